"""MXNet's binary list of arrays (`.params`): every version read, what MXNet 1.9.1 writes written.

A file is, little-endian throughout:

    uint64 0x112, uint64 0 | uint64 n, n arrays | uint64 m, m names (uint64 length, bytes)

with m = 0 or m = n, and an array one of

    V0  uint32 rank                   rank x uint32                 device, flag, data
    V1  uint32 0xF993FAC8, int32 rank rank x int64                  device, flag, data
    V2  uint32 0xF993FAC9, int32 storage, [storage shape,] shape,   device, flag, [aux,] data[, aux]
    V3  uint32 0xF993FACA, as V2, but rank 0 is a scalar and rank -1 an array without a shape

where a shape is `int32 rank, rank x int64`, the device `int32 type, int32 id`, and `aux` of a
sparse array is `int32 flag, shape` for each of its index arrays. Up to V2 rank 0 means an array
without a shape, which ends there. V0's rank stands where the others have their magic number.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final, Literal

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, ParamError, complaint
from gnomon.dtype import DType
from gnomon.ground.files import Reader, Source, kind_of, reading, replacing
from gnomon.ground.record import record
from gnomon.shape import prod

LIST_MAGIC: Final = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
MAX_RANK: Final = 32  # NumPy's own limit was 32 up to 1.26
DEVICES: Final = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
CPU: Final = (1, 0)  # also of what has no shape, which says no device

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Fault = tuple[str, str]  # what was expected, and what is there


@record(eq=False)
class Sparse:
    """A sparse array as files hold it: `data` beside the index arrays `aux`.

    `row_sparse`: `aux = (row indices,)`, data of shape `(rows kept, *shape[1:])`. `csr`:
    `aux = (row starts, column indices)`, data of shape `(values kept,)`.
    """

    storage: Literal["row_sparse", "csr"]
    shape: Shape
    data: Array
    aux: tuple[Array, ...]


Record = Array | Sparse | None  # None: an array that has no shape yet
Device = tuple[int, int]  # type and id of what an array was saved from


# --- reading -----------------------------------------------------------------------------------


def read(source: Source) -> tuple[list[Record], list[str], list[Device]]:
    """The arrays, names and devices of an MXNet array file: a path, its bytes or an open file.

    The names are empty where the file has none; otherwise there is one for each array.

    >>> arrays, names, devices = read(dumps([np.arange(3.0)], ["arg:w"]))
    >>> arrays[0], names, devices
    (array([0., 1., 2.]), ['arg:w'], [(1, 0)])

    Raises:
        FormatError: the bytes are not such a file; says the file, offset, what was expected and
            what stands there. No array is allocated before its size is known to be in the file.
        FileError: the file cannot be read.
    """
    with reading("nd.load", source) as r:
        head = r.take(16, "file header")
        magic, reserved = struct.unpack("<QQ", head)
        if magic != LIST_MAGIC:
            expected = f"an MXNet array file, with magic number {LIST_MAGIC:#x}"
            raise r.fail("file header", expected, f"{head[:8]!r}{kind_of(head)}", at=0)
        if reserved != 0:
            raise r.fail("reserved word of the file header", 0, reserved, at=8)
        placed = [_array(r, f"array {i}") for i in range(_count(r, "number of arrays", 4))]
        names = [_name(r, f"name {i}") for i in range(_count(r, "number of names", 8))]
        if names and len(names) != len(placed):
            raise r.fail("number of names", f"0 or {len(placed)}", len(names))
        if r.left:
            raise r.fail("end of file", "nothing more", f"{r.left} more bytes")
    return [array for array, _ in placed], names, [device for _, device in placed]


def read_array(source: Source) -> tuple[Record, Device]:
    """The one array of a raw stream, such as MXNet's pickles of an NDArray carry, and its device.

    >>> read_array(dumps_array(np.float32([[1, 2]])))
    (array([[1., 2.]], dtype=float32), (1, 0))

    Raises:
        FormatError: as `read`.
    """
    with reading("read_array", source) as r:
        found = _array(r, "array")
        if r.left:
            raise r.fail("end of array", "nothing more", f"{r.left} more bytes")
    return found


def _count(r: Reader, what: str, least: int) -> int:
    """A number of things of which each takes `least` bytes or more."""
    at = r.offset
    (count,) = r.unpack("<Q", what)
    if count * least > r.left:
        raise r.fail(what, f"at most {r.left // least} in {r.left} bytes", count, at)
    return int(count)


def _name(r: Reader, what: str) -> str:
    length = _count(r, f"length of {what}", 1)
    at = r.offset
    raw = r.take(length, what)
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise r.fail(what, "UTF-8", f"{raw[:40]!r}", at + e.start) from None


def _array(r: Reader, what: str) -> tuple[Record, Device]:
    """An array of any version, and its device."""
    at = r.offset
    (magic,) = r.unpack("<I", f"magic number of {what}")
    if magic in (V2, V3):
        return _modern(r, what, np_shape=magic == V3)
    if magic == V1:
        shape = _shape(r, what)
    elif magic <= MAX_RANK:
        shape = _dims(r, what, magic, "I")
    else:
        expected = f"{V1:#x}, {V2:#x}, {V3:#x} or a rank up to {MAX_RANK}"
        raise r.fail(f"magic number of {what}", expected, f"{magic:#x}", at)
    return _dense(r, what, shape) if shape else (None, CPU)


def _modern(r: Reader, what: str, *, np_shape: bool) -> tuple[Record, Device]:
    """An array of V2 or V3, after its magic number."""
    at = r.offset
    (storage,) = r.unpack("<i", f"storage type of {what}")
    if storage not in (0, 1, 2):
        expected = "0 (dense), 1 (row_sparse) or 2 (csr)"
        raise r.fail(f"storage type of {what}", expected, storage, at)
    if storage:
        return _sparse(r, what, storage)
    shape = _shape(r, what, unknown=np_shape)
    if shape is None or -1 in shape or (shape == () and not np_shape):
        return None, CPU
    return _dense(r, what, shape)


def _shape(r: Reader, what: str, *, unknown: bool = False) -> Shape | None:
    """A shape; with `unknown`, rank -1 (None) and extents of -1 are taken too."""
    at = r.offset
    (rank,) = r.unpack("<i", f"rank of {what}")
    if unknown and rank == -1:
        return None
    if not 0 <= rank <= MAX_RANK:
        raise r.fail(f"rank of {what}", f"0 to {MAX_RANK}", rank, at)
    return _dims(r, what, rank, "q", least=-1 if unknown else 0)


def _dims(r: Reader, what: str, rank: int, code: str, least: int = 0) -> Shape:
    at = r.offset
    shape = r.unpack(f"<{rank}{code}", f"shape of {what}")
    if any(extent < least for extent in shape):
        raise r.fail(f"shape of {what}", f"extents of {least} or more", shape, at)
    return shape


def _flag(r: Reader, what: str) -> DType:
    at = r.offset
    (flag,) = r.unpack("<i", f"dtype of {what}")
    try:
        return dtypes.from_flag(flag)
    except DTypeError:
        raise r.fail(f"dtype of {what}", "a known dtype's number (0 to 12)", flag, at) from None


def _device(r: Reader, what: str) -> Device:
    """The device that an array was saved from."""
    at = r.offset
    kind, number = r.unpack("<ii", f"device of {what}")
    if kind not in DEVICES:
        known = ", ".join(f"{k} ({name})" for k, name in DEVICES.items())
        raise r.fail(f"device of {what}", f"one of {known}", kind, at)
    return kind, number


def _dense(r: Reader, what: str, shape: Shape) -> tuple[Array, Device]:
    device = _device(r, what)
    return _data(r, what, shape, _flag(r, what)), device


def _data(r: Reader, what: str, shape: Shape, dtype: DType) -> Array:
    """Elements in row-major order."""
    r.need(prod(shape) * dtype.size, f"data of {what}, {dtype.name} of shape {shape}")
    try:
        raw = np.empty(shape, np.uint8 if dtype.kind == "b" else dtype.numpy)
    except ValueError:  # an extent of 0 beside one that no address space holds
        raise r.fail(f"shape of {what}", "a shape NumPy can hold", shape) from None
    r.into(_raw(raw), f"data of {what}")
    return raw != 0 if dtype.kind == "b" else raw  # a bool that is neither 0 nor 1 breaks NumPy


def _sparse(r: Reader, what: str, storage: int) -> tuple[Sparse, Device]:
    at = r.offset
    stored = _shape(r, f"{what}'s stored rows") or ()
    shape = _shape(r, what) or ()
    device = _device(r, what)
    dtype = _flag(r, what)
    aux_types = [_index_type(r, f"index {i} of {what}") for i in range(storage)]
    data = _data(r, what, stored, dtype)
    aux = tuple(_data(r, f"index {i} of {what}", s, t) for i, (t, s) in enumerate(aux_types))
    sparse = Sparse("row_sparse" if storage == 1 else "csr", shape, data, aux)
    if wrong := fault(sparse):
        raise r.fail(f"{what}, {sparse.storage} of shape {shape}", *wrong, at)
    return sparse, device


def _index_type(r: Reader, what: str) -> tuple[DType, Shape]:
    return _flag(r, what), _shape(r, what) or ()


def fault(x: Sparse) -> Fault | None:
    """What should hold of a sparse record and does not, and what is there instead.

    >>> fault(Sparse("row_sparse", (3, 1), np.ones((2, 1)), (np.array([0, 7]),)))
    ('row indices from 0 to 2', '7 at 1')
    """
    if any(index.dtype.kind not in "iu" or index.ndim != 1 for index in x.aux):
        got = ", ".join(f"{index.dtype} of shape {index.shape}" for index in x.aux)
        return "1-D index arrays of integers", got
    return _row_sparse_fault(x) if x.storage == "row_sparse" else _csr_fault(x)


def _parts(x: Sparse) -> str:
    """The sizes of a sparse record's parts."""
    indices = " and ".join(str(len(part)) for part in x.aux)
    return f"data of shape {x.data.shape} and {indices} indices for shape {x.shape}"


def _row_sparse_fault(x: Sparse) -> Fault | None:
    if not x.shape or len(x.aux) != 1 or x.data.shape != (len(x.aux[0]), *x.shape[1:]):
        return "one row of data for each index, as long as the shape's rows", _parts(x)
    return _outside("row", x.aux[0], x.shape[0])


def _csr_fault(x: Sparse) -> Fault | None:
    if len(x.shape) != 2 or len(x.aux) != 2 or x.data.shape != x.aux[1].shape:
        return "two axes, and one column index for each value", _parts(x)
    starts, columns = x.aux
    if wrong := _outside("column", columns, x.shape[1]):
        return wrong
    if len(starts) == 0 and len(columns) == 0:  # MXNet writes an untouched array so
        return None
    if len(starts) != x.shape[0] + 1 or starts[0] != 0 or starts[-1] != len(columns):
        expected = f"{x.shape[0] + 1} row starts, from 0 to {len(columns)}, the number of values"
        got = f"{len(starts)}, from {starts[0]} to {starts[-1]}" if len(starts) else "none"
        return expected, got
    return falling("row starts that never fall", starts, starts, steps=0)


def falling(expected: str, order: Array, shown: Array, steps: int = 1) -> Fault | None:
    """Where `order` first does not rise by as much as `steps`, told by `shown`; or None."""
    wrong = order[1:] < order[:-1] + steps
    if not wrong.any():
        return None
    at = int(wrong.argmax())
    return expected, f"{shown[at]}, then {shown[at + 1]}, at {at + 1}"


def _outside(what: str, index: Array, size: int) -> Fault | None:
    """Which of these indices is the first that lies outside of an axis, if any."""
    wrong = (index < 0) | (index >= size)
    if not wrong.any():
        return None
    at = int(wrong.argmax())
    return f"{what} indices from 0 to {size - 1}", f"{index[at]} at {at}"


# --- writing -----------------------------------------------------------------------------------


def write(
    target: Any,
    arrays: Sequence[Any],
    names: Sequence[str] = (),
    devices: Sequence[Device] = (),
) -> None:
    """Write arrays (and names, none or one each) as MXNet 1.9.1 does, byte for byte.

    `target` is a path, replaced only when everything is written, or an open binary file. Dense
    arrays are V2; a 0-d array or one with no elements, which V2 cannot say, is V3, as MXNet does
    under its NumPy shapes. `devices` are put down, one for each array; without them the processor.

    Raises:
        ParamError: the names do not go with the arrays, or a sparse record is inconsistent.
        DTypeError: an array of a type the format has no number for.
        FileError: the file cannot be written; what stood there before still does.
    """
    if names and len(names) != len(arrays):
        raise ParamError(complaint("save", "names", f"none or {len(arrays)}", len(names)))
    prepared = [_prepare(x, i) for i, x in enumerate(arrays)]
    placed = list(zip(prepared, devices or [CPU] * len(prepared), strict=True))
    encoded = [name.encode() for name in names]
    if hasattr(target, "write"):
        _write(target, placed, encoded)
        return
    with replacing("nd.save", target) as stream:
        _write(stream, placed, encoded)


def dumps(arrays: Sequence[Any], names: Sequence[str] = ()) -> bytes:
    """What `write` would put into a file.

    >>> dumps([])[:2].hex(), len(dumps([], []))
    ('1201', 32)

    Raises:
        ParamError, DTypeError: as `write`.
    """
    stream = io.BytesIO()
    write(stream, arrays, names)
    return stream.getvalue()


def dumps_array(array: Any, device: Device = CPU) -> bytes:
    """One array without the list around it, as MXNet pickles an NDArray.

    Raises:
        ParamError, DTypeError: as `write`.
    """
    stream = io.BytesIO()
    _write_array(stream, _prepare(array, 0), device)
    return stream.getvalue()


def merge(arrays: Sequence[Any] | Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """The arrays and names of what `nd.save` takes: a list, or a dict of name to array."""
    if isinstance(arrays, Mapping):
        return list(arrays.values()), list(arrays)
    return list(arrays), []


def _prepare(x: Any, position: int) -> Record:
    """`x` ready to be written: checked, native byte order, contiguous."""
    if isinstance(x, Sparse):
        if wrong := fault(x):
            raise ParamError(complaint("save", f"arrays[{position}]", *wrong))
        return Sparse(x.storage, x.shape, _flat(x.data), tuple(map(_flat, x.aux)))
    return None if x is None else _flat(np.asarray(x))


def _flat(array: Array) -> Array:
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    dtypes.of(native.dtype)  # refuses what the format cannot say
    return np.asarray(native, order="C")


def _write(
    stream: IO[bytes], placed: Sequence[tuple[Record, Device]], names: Sequence[bytes]
) -> None:
    stream.write(struct.pack("<QQQ", LIST_MAGIC, 0, len(placed)))
    for array, device in placed:
        _write_array(stream, array, device)
    stream.write(struct.pack("<Q", len(names)))
    for name in names:
        stream.write(struct.pack("<Q", len(name)) + name)


def _write_array(stream: IO[bytes], x: Record, device: Device) -> None:
    if x is None:
        stream.write(struct.pack("<Iii", V2, 0, 0))
    elif isinstance(x, Sparse):
        kind = 1 if x.storage == "row_sparse" else 2
        shapes = _pack_shape(x.data.shape) + _pack_shape(x.shape)
        stream.write(struct.pack("<Ii", V2, kind) + shapes + struct.pack("<ii", *device))
        stream.write(_pack_flag(x.data))
        stream.write(b"".join(_pack_flag(index) + _pack_shape(index.shape) for index in x.aux))
        for part in (x.data, *x.aux):
            stream.write(_raw(part))
    else:
        version = V2 if x.ndim and x.size else V3
        stream.write(struct.pack("<Ii", version, 0) + _pack_shape(x.shape))
        stream.write(struct.pack("<ii", *device) + _pack_flag(x))
        stream.write(_raw(x))


def _raw(array: Array) -> memoryview:
    """The bytes of a contiguous array, not copied."""
    return array.reshape(-1).view(np.uint8).data


def _pack_flag(array: Array) -> bytes:
    return struct.pack("<i", dtypes.of(array.dtype).flag)


def _pack_shape(shape: Shape) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)
