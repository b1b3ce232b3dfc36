"""Record files and array files as the real library writes them."""

import json

import mxnet as mx
import numpy as np

MAGIC = b"\x0a\x23\xd7\xce"

RECORDS = [
    *(b"abcd"[:n] for n in range(5)),
    b"xxxx" + MAGIC + b"yyyy",
    MAGIC,
    MAGIC + MAGIC,
    b"x" + MAGIC,
    b"abcd" + MAGIC,
    MAGIC + b"abc",
    b"abc" + MAGIC + b"d" + MAGIC,
    b"1234" * 3 + MAGIC + b"56" + MAGIC + b"78",
]

HEADERS = [(0, 3.0, 7, 0), (0, [1, 2, 3], 7, 1), (5, 4.5, 7, 1), (0, [1.5], 2**40, 1)]


def records(folder) -> None:
    """records.rec with its index, and records.json with what is in it."""
    packed = [mx.recordio.pack(mx.recordio.IRHeader(*h), b"content") for h in HEADERS]
    everything = RECORDS + packed
    file = mx.recordio.MXIndexedRecordIO(
        str(folder / "records.idx"), str(folder / "records.rec"), "w"
    )
    for i, record in enumerate(everything):
        file.write_idx(10 * i, record)
    file.close()
    facts = {"records": [r.hex() for r in everything], "headers": HEADERS}
    (folder / "records.json").write_text(json.dumps(facts) + "\n")


def arrays(folder) -> None:
    """arrays.params: every dtype the real library saves, named; sparse.params: both kinds."""
    rng = np.random.RandomState(7)
    floats = {t: rng.randn(2, 3).astype(t) for t in ("float32", "float64", "float16")}
    ints = {
        t: rng.randint(0, 100, (3, 1, 2)).astype(t) for t in ("uint8", "int8", "int32", "int64")
    }
    both = {**floats, **ints, "bool": rng.rand(4) > 0.5}
    mx.nd.save(
        str(folder / "arrays.params"), {k: mx.nd.array(v, dtype=v.dtype) for k, v in both.items()}
    )
    np.savez(folder / "arrays.npz", **both)
    rows = mx.nd.sparse.row_sparse_array(([[1.0, 2], [3, 4]], [0, 2]), shape=(4, 2))
    csr = mx.nd.sparse.csr_matrix(([1.0, 2], [1, 0], [0, 1, 2, 2]), shape=(3, 2))
    empty = mx.nd.sparse.zeros("csr", (4, 2))
    mx.nd.save(str(folder / "sparse.params"), [rows, csr, empty])


def make(folder) -> None:
    """Write them all."""
    records(folder)
    arrays(folder)
