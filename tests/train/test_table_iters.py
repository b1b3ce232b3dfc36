"""CSVIter, LibSVMIter, MNISTIter: batches in rounds, parts, folders, packed files, broken ones."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from golden import tables

import gnomon as mx

GOLDEN = Path(__file__).parent.parent / "golden"
RECORDED = json.loads(gzip.decompress((GOLDEN / "tables.json.gz").read_bytes()))


@pytest.mark.parametrize("name", tables.CASES)
def test_batches_are_the_real_ones(tmp_path, name):
    tables.write(tmp_path)
    assert tables.epochs(mx, tmp_path, name) == RECORDED[name]


@pytest.mark.parametrize("name", [name for name in tables.CASES if name.startswith("mnist")])
def test_packed_files_give_the_same(tmp_path, name):
    tables.write(tmp_path)
    for file in ("im", "lb"):
        content = (tmp_path / file).read_bytes()
        (tmp_path / f"{file}.gz").write_bytes(gzip.compress(content))
    assert tables.epochs(mx, tmp_path, name, ".gz") == RECORDED[name]


def epochs(it, count=2):
    """(labels, pad, index) of the batches of some epochs."""
    seen = []
    for _ in range(count):
        for batch in it:
            label = batch.label[0].asnumpy().tolist()
            seen.append((label, batch.pad, batch.index.tolist()))
        it.reset()
    return seen


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("d.csv", np.arange(15).reshape(5, 3), delimiter=",")
    np.savetxt("l.csv", np.arange(5), delimiter=",")
    text = "1 0:1.5 3:2\n0 1:1\n\n2 2:3 3:4  # the third\n1 0:7\n0.5\n"
    (tmp_path / "a.svm").write_text(text)
    (tmp_path / "l.svm").write_text("0 0:1 2:5\n1 1:2\n2 2:3\n0 0:4\n1 1:5\n")
    return tmp_path


def test_rounds_go_on_where_the_last_one_ended(folder):
    it = mx.io.CSVIter(
        data_csv="d.csv", data_shape=(3,), label_csv="l.csv", batch_size=2, prefetch_buffer="4"
    )
    assert it.provide_data == [("data", (2, 3))]
    assert it.provide_label == [("softmax_label", (2,))]
    assert epochs(it) == [
        ([0, 1], 0, [0, 1]),
        ([2, 3], 0, [2, 3]),
        ([4, 0], 1, [4, 0]),
        ([1, 2], 0, [1, 2]),
        ([3, 4], 0, [3, 4]),
    ]
    next(it)
    it.reset()
    assert epochs(it, 1)[0] == ([0, 1], 0, [0, 1])


def test_without_rounds_every_epoch_begins_anew(folder):
    it = mx.io.CSVIter(
        data_csv="d.csv", data_shape="(3,)", label_csv="l.csv", batch_size=2, round_batch=False
    )
    first = epochs(it, 1)
    assert first == epochs(it, 1)
    assert first[-1] == ([4, 0], 1, [4, 0])


def test_shapes_dtypes_and_names(folder):
    it = mx.io.CSVIter(
        data_csv="d.csv", data_shape=(3, 1), label_csv="d.csv", label_shape=(1, 3), batch_size=8,
        dtype="float64", data_name="x", label_name="y",
    )  # fmt: skip
    batch = next(it)
    assert it.provide_data == [("x", (8, 3, 1))]
    assert it.provide_label == [("y", (8, 1, 3))]
    assert batch.data[0].dtype == np.float64
    assert (batch.pad, batch.index.dtype) == (3, np.uint64)
    np.testing.assert_array_equal(
        batch.data[0].asnumpy()[5:, :, 0], [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    )


def test_whole_numbers_as_savetxt_writes_them(tmp_path):
    path = tmp_path / "a.csv"
    np.savetxt(path, np.array([[1, -2], [30, 4]]), delimiter=",")
    for kind in ("int32", "int8", "int64"):
        it = mx.io.CSVIter(data_csv=str(path), data_shape=(2,), batch_size=2, dtype=kind)
        got = next(it).data[0].asnumpy()
        assert (got.dtype, got.tolist()) == (kind, [[1, -2], [30, 4]])
    with pytest.raises(
        mx.MXNetError, match=r"a\.csv: expected whole numbers from 0 to 255, got -2"
    ):
        mx.io.CSVIter(data_csv=str(path), data_shape=(2,), batch_size=2, dtype="uint8")


def test_unknown_options_are_told_and_ignored(folder, caplog):
    it = mx.io.CSVIter(data_csv="d.csv", data_shape=(3,), batch_size=2, bach_size=3, silent=True)
    assert next(it).data[0].shape == (2, 3)
    told = [record.message for record in caplog.records]
    assert (
        told[0] == "CSVIter: the unknown option 'bach_size' is ignored; did you mean 'batch_size'?"
    )
    assert told[1].endswith("'silent' is ignored")


def test_folders_and_packed_files(folder):
    (folder / "many").mkdir()
    (folder / "many" / "b.csv").write_text("5,6\n")
    (folder / "many" / "a.csv.gz").write_bytes(gzip.compress(b"1,2\n3,4\n"))
    it = mx.io.CSVIter(data_csv="many", data_shape=(2,), batch_size=3)
    assert next(it).data[0].asnumpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert it.provide_label == [("softmax_label", (3,))]


def test_csr_batches(folder):
    it = mx.io.LibSVMIter(data_libsvm="a.svm", data_shape=(4,), batch_size=2)
    batch = next(it)
    assert batch.data[0].stype == "csr"
    assert batch.data[0].asnumpy().tolist() == [[1.5, 0, 0, 2], [0, 1, 0, 0]]
    it.reset()
    assert [s[0] for s in epochs(it)] == [[1, 0], [2, 1], [0.5, 1], [0, 2], [1, 0.5]]
    last = next(b for b in it if b.index[-1] == 0).data[0]
    assert last.asnumpy().tolist() == [[0, 0, 0, 0], [1.5, 0, 0, 2]]


def test_a_label_may_have_a_weight_which_nothing_reads(folder):  # as in MXNet
    (folder / "w.svm").write_text("1:.5 0:1\n2:3 1:2 3:4\n")
    kinds = {"data_libsvm": "w.svm", "data_shape": (4,), "batch_size": 2}
    batch = next(mx.io.LibSVMIter(**kinds))
    assert batch.data[0].asnumpy().tolist() == [[1, 0, 0, 0], [0, 2, 0, 4]]
    assert batch.label[0].asnumpy().tolist() == [1, 2]
    batch = next(mx.io.LibSVMIter(**kinds, label_libsvm="w.svm", label_shape=(4,)))
    assert batch.label[0].asnumpy().tolist() == batch.data[0].asnumpy().tolist()


def test_csr_labels_and_parts(folder):
    it = mx.io.LibSVMIter(
        data_libsvm="a.svm", data_shape=(4,), label_libsvm="l.svm", label_shape=(3,), batch_size=2
    )
    batch = next(it)
    assert batch.label[0].stype == "csr"
    assert batch.label[0].asnumpy().tolist() == [[1, 0, 5], [0, 2, 0]]
    part = mx.io.LibSVMIter(
        data_libsvm="a.svm", data_shape=(4,), batch_size=2, num_parts=2, part_index=1
    )
    assert [s[0] for s in epochs(part, 1)] == [[2, 1], [0.5, 2]]


def mnist(folder, count=7):
    pictures = np.random.default_rng(0).integers(0, 256, (count, 4, 5)).astype(np.uint8)
    (folder / "im").write_bytes(struct.pack(">4I", 0x803, count, 4, 5) + pictures.tobytes())
    packed = gzip.compress(struct.pack(">2I", 0x801, count) + bytes(range(count)))
    (folder / "lb.gz").write_bytes(packed)
    return pictures


def test_mnist(folder, caplog):
    pictures = mnist(folder)
    names = {"image": "im", "label": "lb.gz", "batch_size": 2}
    it = mx.io.MNISTIter(**names, shuffle=False, flat=True, silent=True)
    assert it.provide_data == [("data", (2, 20))]
    np.testing.assert_array_equal(next(it).data[0].asnumpy() * 256, pictures[:2].reshape(2, 20))
    it.reset()
    assert [s[0] for s in epochs(it)] == [[0, 1], [2, 3], [4, 5]] * 2
    part = mx.io.MNISTIter(**names, shuffle=False, num_parts=3, part_index=1)
    assert [s[0] for s in epochs(part, 1)] == [[2, 3]]
    assert part.provide_data == [("data", (2, 1, 4, 5))]
    shuffled = [epochs(mx.io.MNISTIter(**names, seed=s), 2) for s in (1, 1, 2)]
    assert shuffled[0] == shuffled[1] != shuffled[2]
    assert shuffled[0][:3] == shuffled[0][3:]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mx.io.CSVIter(data_csv="no.csv", data_shape=(3,), batch_size=2), "no.csv"),
        (lambda: mx.io.CSVIter(data_csv="d.csv", data_shape=(2,), batch_size=2), "2 numbers a row"),
        (lambda: mx.io.CSVIter(data_csv="bad.csv", data_shape=(2,), batch_size=2), "at row 1"),
        (lambda: mx.io.CSVIter(data_csv="empty.csv", data_shape=(2,), batch_size=2), "no rows"),
        (lambda: mx.io.CSVIter(data_csv="d.csv", data_shape=(3,)), "batch_size"),
        (
            lambda: mx.io.CSVIter(
                data_csv="d.csv", data_shape=(3,), label_csv="short.csv", batch_size=2
            ),
            "5 rows",
        ),
        (lambda: mx.io.LibSVMIter(data_libsvm="bad.csv", data_shape=(4,), batch_size=2), "line 1"),
        (lambda: mx.io.LibSVMIter(data_libsvm="a.svm", data_shape=(3,), batch_size=2), "0 to 2"),
        (
            lambda: mx.io.LibSVMIter(
                data_libsvm="a.svm", data_shape=(4,), batch_size=2, num_parts=2, part_index=2
            ),
            "below num_parts=2",
        ),
        (
            lambda: mx.io.LibSVMIter(
                data_libsvm="a.svm", data_shape=(4,), label_libsvm="short.csv", batch_size=2
            ),
            "5 lines",
        ),
        (lambda: mx.io.MNISTIter(image="d.csv", label="l.csv"), "IDX format"),
        (lambda: mx.io.MNISTIter(image="cut", label="cut"), "bytes, got 3"),
        (lambda: mx.io.MNISTIter(image="broken.gz", label="cut"), r"broken\.gz"),
    ],
)
def test_broken_files_are_told(folder, make, words):
    (folder / "bad.csv").write_text("1,2\n3,x\n")
    (folder / "empty.csv").write_text("\n")
    (folder / "short.csv").write_text("1\n2\n")
    (folder / "cut").write_bytes(struct.pack(">2I", 0x801, 9) + b"abc")
    (folder / "broken.gz").write_bytes(gzip.compress(b"abc" * 99)[:-9])
    with pytest.raises(mx.MXNetError, match=words):
        make()


def test_training_on_csr_batches(folder):
    it = mx.io.LibSVMIter(data_libsvm="a.svm", data_shape=(4,), batch_size=2)
    data, label = mx.sym.Variable("data", stype="csr"), mx.sym.Variable("softmax_label")
    weight = mx.sym.Variable("weight", shape=(4, 1), stype="row_sparse")
    net = mx.sym.LinearRegressionOutput(mx.sym.sparse.dot(data, weight), label)
    module = mx.mod.Module(net)
    module.fit(it, num_epoch=2, optimizer_params={"learning_rate": 0.01}, eval_metric="mse")
    assert np.isfinite(module.get_params()[0]["weight"].asnumpy()).all()
