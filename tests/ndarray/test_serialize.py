"""The binary array list: bytes as MXNet writes them, every version read, broken files refused."""

import pickle
import struct
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.base import DTypeError, FormatError, ParamError
from gnomon.ndarray.api import serialize
from gnomon.ndarray.api.serialize import (
    V1,
    V2,
    V3,
    Sparse,
    dumps,
    dumps_array,
    read,
    read_array,
    write,
)

TYPES = (
    "float32 float64 float16 uint8 int32 int8 int64 bool int16 uint16 uint32 uint64 bfloat16"
).split()
NUMPY = {flag: np.dtype(getattr(ml_dtypes, name, name)) for flag, name in enumerate(TYPES)}


def listing(*arrays: bytes, names: tuple[bytes, ...] = ()) -> bytes:
    """A file of ready-made arrays."""
    packed = [struct.pack("<Q", len(n)) + n for n in names]
    head = struct.pack("<QQQ", 0x112, 0, len(arrays))
    return b"".join([head, *arrays, struct.pack("<Q", len(names)), *packed])


def shape(*dims: int) -> bytes:
    return struct.pack(f"<i{len(dims)}q", len(dims), *dims)


def dense(version: int, *dims: int, flag: int = 0, data: bytes | None = None, device=(1, 0)):
    """An array of version `version` (0: legacy), its elements all 2."""
    if version == 0:
        head = struct.pack(f"<I{len(dims)}I", len(dims), *dims)
    elif version == V1:
        head = struct.pack("<I", V1) + shape(*dims)
    else:
        head = struct.pack("<Ii", version, 0) + shape(*dims)
    if data is None:
        data = np.full(dims, 2, NUMPY[flag]).tobytes()
    return head + struct.pack("<iii", *device, flag) + data


def same(a, b) -> bool:
    """Two records hold the same."""
    if isinstance(a, Sparse):
        return (a.storage, a.shape) == (b.storage, b.shape) and all(
            map(same, (a.data, *a.aux), (b.data, *b.aux))
        )
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


ROWS = Sparse("row_sparse", (4, 2), np.float32([[1, 2], [3, 4]]), (np.int64([0, 2]),))
CSR = Sparse("csr", (3, 2), np.float32([1, 2]), (np.int64([0, 1, 2, 2]), np.int64([1, 0])))

# --- bytes written, as the real library wrote them --------------------------------------------

RECORDED = {
    "f32": (
        [np.float32([1, 2])],
        [],
        "1201000000000000 0000000000000000 0100000000000000 c9fa93f9 00000000 01000000"
        "0200000000000000 01000000 00000000 00000000 0000803f 00000040 0000000000000000",
    ),
    "int32 with a name": (
        [np.int32([[1]])],
        ["arg:a"],
        "1201000000000000 0000000000000000 0100000000000000 c9fa93f9 00000000 02000000"
        "0100000000000000 0100000000000000 01000000 00000000 04000000 01000000"
        "0100000000000000 0500000000000000 6172673a61",
    ),
    "row_sparse": (
        [ROWS],
        [],
        "1201000000000000 0000000000000000 0100000000000000 c9fa93f9 01000000"
        "02000000 0200000000000000 0200000000000000 02000000 0400000000000000 0200000000000000"
        "01000000 00000000 00000000 06000000 01000000 0200000000000000"
        "0000803f 00000040 00004040 00008040 0000000000000000 0200000000000000 0000000000000000",
    ),
    "csr": (
        [CSR],
        [],
        "1201000000000000 0000000000000000 0100000000000000 c9fa93f9 02000000"
        "01000000 0200000000000000 02000000 0300000000000000 0200000000000000"
        "01000000 00000000 00000000 06000000 01000000 0400000000000000"
        "06000000 01000000 0200000000000000 0000803f 00000040"
        "0000000000000000 0100000000000000 0200000000000000 0200000000000000"
        "0100000000000000 0000000000000000 0000000000000000",
    ),
    "0-d": (
        [np.float32(5)],
        [],
        "1201000000000000 0000000000000000 0100000000000000 cafa93f9 00000000 00000000"
        "01000000 00000000 00000000 0000a040 0000000000000000",
    ),
    "no elements": (
        [np.zeros((0, 3), np.float32)],
        [],
        "1201000000000000 0000000000000000 0100000000000000 cafa93f9 00000000 02000000"
        "0000000000000000 0300000000000000 01000000 00000000 00000000 0000000000000000",
    ),
}


@pytest.mark.parametrize("case", RECORDED)
def test_bytes_are_those_the_real_library_wrote(case):
    arrays, names, recorded = RECORDED[case]
    assert dumps(arrays, names) == bytes.fromhex(recorded)
    back, back_names, _ = read(bytes.fromhex(recorded))
    assert back_names == names
    assert all(map(same, back, map(serialize._prepare, arrays, range(9))))


@pytest.mark.parametrize("flag", NUMPY)
@pytest.mark.parametrize("version", [0, V1, V2, V3])
def test_every_dtype_in_every_version(flag, version):
    (array,), *_ = read(listing(dense(version, 2, 3, flag=flag)))
    assert same(array, np.full((2, 3), 2, NUMPY[flag]))
    assert array.flags.writeable
    if version == V2:
        assert dumps([array]) == listing(dense(V2, 2, 3, flag=flag, data=array.tobytes()))


def test_arrays_without_a_shape():
    none = [
        struct.pack("<I", 0),
        struct.pack("<Ii", V1, 0),
        struct.pack("<Iii", V2, 0, 0),
        struct.pack("<Iii", V3, 0, -1),
        struct.pack("<Iiiqq", V3, 0, 2, 3, -1),
    ]
    arrays, *_ = read(listing(*none, dense(V2, 1)))
    assert arrays[:-1] == [None] * 5
    assert arrays[-1].shape == (1,)
    assert read(dumps([None, np.ones(2)]))[0][0] is None


def test_np_shapes_and_devices():
    raw = listing(dense(V3), dense(V3, 2, 0), dense(V2, 2, device=(2, 3)))
    (scalar, empty, gpu), _, devices = read(raw)
    assert devices == [(1, 0), (1, 0), (2, 3)]
    assert (scalar.shape, scalar[()], empty.shape, gpu.shape) == ((), 2.0, (2, 0), (2,))
    assert struct.pack("<ii", 2, 3) in dumps_array(gpu, (2, 3))


def test_bools_are_zero_or_one():
    (array,), *_ = read(listing(dense(V2, 3, flag=7, data=b"\0\1\7")))
    assert array.view(np.uint8).tolist() == [0, 1, 1]


def test_single_arrays():
    for x in (np.float64([[1, 2]]), ROWS, CSR, np.float16(3)):
        assert same(read_array(dumps_array(x))[0], x)
    pickled = bytes.fromhex("c9fa93f9 00000000 02000000 0100000000000000 0200000000000000")
    pickled += bytes.fromhex("01000000 00000000 02000000 003c003c")
    assert dumps_array(np.float16([[1, 1]])) == pickled
    with pytest.raises(FormatError, match="offset 44: end of array: expected nothing more"):
        read_array(pickled + b"x")


def test_untouched_sparse_arrays_are_read():
    rows = Sparse("row_sparse", (4, 2), np.zeros((0, 2), np.float32), (np.zeros(0, np.int64),))
    empty = Sparse("csr", (4, 2), np.zeros(0, np.float32), (np.zeros(0, np.int64),) * 2)
    assert all(map(same, read(dumps([rows, empty]))[0], [rows, empty]))


def test_strange_layouts_and_byte_orders_are_written_in_order():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert dumps([x.T]) == dumps([np.ascontiguousarray(x.T)])
    assert dumps([x.astype(">f4")]) == dumps([x]) == dumps([x[::-1][::-1]])
    assert dumps([[1.0, 2.0]]) == dumps([np.float64([1, 2])])


# --- what is refused --------------------------------------------------------------------------

V2_ARRAY = dense(V2, 2)
HUGE = 2**62

BROKEN = {
    "nothing at all": (b"", "offset 0: file header: expected 16 bytes, got 0 before the end"),
    "another format": (b"PK" + bytes(40), r"offset 0: file header: expected an MXNet array file"),
    "reserved word": (
        struct.pack("<QQQQ", 0x112, 5, 0, 0),
        "offset 8: reserved word of the file header: expected 0, got 5",
    ),
    "count": (
        struct.pack("<QQQQ", 0x112, 0, HUGE, 0),
        f"offset 16: number of arrays: expected at most 2 in 8 bytes, got {HUGE}",
    ),
    "magic": (listing(struct.pack("<I", 0xDEADBEEF)), "offset 24: magic number of array 0"),
    "storage": (
        listing(struct.pack("<Ii", V2, 9)),
        r"offset 28: storage type of array 0: expected 0 \(dense\), .* got 9",
    ),
    "rank": (
        listing(struct.pack("<Iii", V2, 0, 1000)),
        "offset 32: rank of array 0: expected 0 to 32, got 1000",
    ),
    "negative rank": (listing(struct.pack("<Iii", V2, 0, -1)), "rank of array 0: .*got -1"),
    "negative extent": (
        listing(struct.pack("<Iiiqq", V2, 0, 2, 3, -4)),
        r"offset 36: shape of array 0: expected extents of 0 or more, got \(3, -4\)",
    ),
    "extent below -1": (listing(struct.pack("<Iiiq", V3, 0, 1, -2)), "extents of -1 or more"),
    "huge extent": (
        listing(dense(V2, HUGE, data=b"")),
        f"data of array 0, float32 of shape .*: expected {4 * HUGE} bytes, got 8 before the end",
    ),
    "overflowing product": (listing(dense(V2, 2**32, 2**33, data=b"")), "data of array 0"),
    "huge extent beside 0": (
        listing(dense(V2, 0, HUGE, HUGE, data=b"")),
        "shape of array 0: expected a shape NumPy can hold",
    ),
    "dtype": (listing(dense(V2, 2, flag=0)[:-12] + struct.pack("<iq", 77, 0)), "got 77"),
    "device": (
        listing(dense(V2, 2, device=(9, 0))),
        r"offset 44: device of array 0: expected one of 1 \(cpu\), 2 \(gpu\), .* got 9",
    ),
    "names beyond arrays": (
        listing(V2_ARRAY, names=(b"a", b"b")),
        "number of names: expected 0 or 1, got 2",
    ),
    "name count": (
        listing(V2_ARRAY)[:-8] + struct.pack("<Q", HUGE),
        "number of names: expected at most 0 in 0 bytes",
    ),
    "name length": (
        listing(V2_ARRAY)[:-8] + struct.pack("<QQ", 1, HUGE),
        "length of name 0: expected at most 0 in 0 bytes",
    ),
    "name not UTF-8": (listing(V2_ARRAY, names=(b"a\xff",)), "name 0: expected UTF-8, got b'a"),
    "trailing bytes": (
        listing(V2_ARRAY) + b"!",
        "offset 72: end of file: expected nothing more, got 1 more bytes",
    ),
    "row outside": (
        dumps([ROWS]).replace(struct.pack("<qq", 0, 2), struct.pack("<qq", 0, 7)),
        r"array 0, row_sparse of shape .*: expected row indices from 0 to 3, got 7 at 1",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_refused_with_the_place(case):
    raw, message = BROKEN[case]
    with pytest.raises(FormatError, match=message):
        read(raw)


def test_a_file_cut_anywhere_is_refused():
    whole = dumps([np.float32([1, 2]), ROWS, CSR, None, np.float32(1)], list("abcde"))
    for length in range(len(whole)):
        with pytest.raises(FormatError):
            read(whole[:length])


SPARSE_FAULTS = {
    "rows": Sparse("row_sparse", (4, 2), np.ones((3, 2)), (np.int64([0, 2]),)),
    "row": Sparse("row_sparse", (4, 2), np.ones((1, 2)), (np.int64([-1]),)),
    "scalar": Sparse("row_sparse", (), np.ones((1, 2)), (np.int64([1]),)),
    "float index": Sparse("row_sparse", (4, 2), np.ones((1, 2)), (np.ones(1),)),
    "column": Sparse("csr", (1, 2), np.ones(1), (np.int64([0, 1]), np.int64([2]))),
    "columns": Sparse("csr", (1, 2), np.ones(2), (np.int64([0, 1]), np.int64([1]))),
    "starts": Sparse("csr", (1, 2), np.ones(1), (np.int64([0, 1, 1]), np.int64([1]))),
    "last start": Sparse("csr", (1, 2), np.ones(1), (np.int64([0, 2]), np.int64([1]))),
    "falling": Sparse("csr", (2, 2), np.ones(1), (np.int64([0, 2, 1]), np.int64([1]))),
}


@pytest.mark.parametrize("case", SPARSE_FAULTS)
def test_inconsistent_sparse_arrays_are_refused_both_ways(case, monkeypatch):
    with pytest.raises(ParamError, match=r"save: argument 'arrays\[0\]'"):
        dumps([SPARSE_FAULTS[case]])
    monkeypatch.setattr(serialize, "_prepare", lambda x, i: x)
    raw = dumps([SPARSE_FAULTS[case]])
    monkeypatch.undo()
    with pytest.raises(FormatError, match=r"offset 32: array 0, .* of shape .*: expected"):
        read(raw)


def test_a_hostile_header_takes_no_memory():
    raw = listing(dense(V2, 1 << 40, data=b""), dense(0, 1 << 31, 1 << 31, data=b""))
    tracemalloc.start()
    with pytest.raises(FormatError):
        read(raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


arrays = st.lists(
    st.sampled_from([np.float32([1, 2]), np.int8([[3]]), ROWS, CSR, None, np.float16(2)]),
    min_size=1,
    max_size=3,
)


@settings(max_examples=300)
@given(arrays, st.data())
def test_mutated_files_are_read_or_refused_but_nothing_else(items, data):
    raw = bytearray(dumps(items, [f"n{i}" for i in range(len(items))]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        edit = data.draw(st.sampled_from(["set", "cut", "double", "word"]))
        if edit == "set":
            raw[at] = data.draw(st.integers(0, 255))
        elif edit == "cut":
            del raw[at : at + data.draw(st.integers(1, 9))]
        elif edit == "double":
            raw[at:at] = raw[at : at + 8]
        else:
            word = data.draw(st.sampled_from([-1, 0, 1, 2**31 - 1, -(2**63), 2**63 - 1]))
            raw[at : at + 8] = struct.pack("<q", word)
        if not raw:
            break
    try:
        back, names, _ = read(bytes(raw))
    except FormatError:
        return
    assert dumps(back, names)


# --- files ------------------------------------------------------------------------------------


def test_a_failing_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.params"
    write(path, [np.ones(3)], ["w"])
    before = path.read_bytes()
    for arrays, names in (
        ([np.ones(3), np.ones(2, complex)], []),
        ([np.ones(3)], ["a", "b"]),
        ([np.ones(3)], ["\ud800"]),
        ([SPARSE_FAULTS["rows"]], []),
    ):
        with pytest.raises((DTypeError, ParamError, UnicodeEncodeError)):
            write(path, arrays, names)
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["a.params"]


def test_files_name_themselves(tmp_path):
    path = tmp_path / "a.params"
    path.write_bytes(b"x" * 30)
    with pytest.raises(FormatError, match=r"a\.params: offset 0: file header"):
        read(path)
    with path.open("wb") as stream:
        write(stream, [np.ones(2)])
    with path.open("rb") as stream:
        assert read(stream)[0][0].tolist() == [1, 1]
    assert read(str(path))[1] == []


def test_merge_takes_what_save_takes():
    assert serialize.merge({"a": 1, "b": 2}) == ([1, 2], ["a", "b"])
    assert serialize.merge((1, 2)) == ([1, 2], [])


def test_errors_survive_pickling():
    with pytest.raises(FormatError) as caught:
        read(b"")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# --- golden files -----------------------------------------------------------------------------

GOLDEN = Path(__file__).parent.parent / "golden"


def test_the_real_librarys_files_are_read_and_written_byte_for_byte():
    values, names, _ = read(GOLDEN / "arrays.params")
    expected = np.load(GOLDEN / "arrays.npz")
    assert names == expected.files
    assert all(same(a, expected[n]) for a, n in zip(values, names, strict=True))
    assert dumps(values, names) == (GOLDEN / "arrays.params").read_bytes()
    sparse, names, _ = read(GOLDEN / "sparse.params")
    assert [s.storage for s in sparse] == ["row_sparse", "csr", "csr"]
    assert dumps(sparse, names) == (GOLDEN / "sparse.params").read_bytes()
