"""Tensors of the v2 inference protocol: its names of dtypes, numbers in JSON and plain bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import ParamError, complaint
from gnomon.dtype import DType
from gnomon.shape import prod

Shape = tuple[int, ...]
Values = np.ndarray[Any, Any]

ANY = -1  # a size that a request chooses

_NAMES = {
    "BOOL": dtypes.bool_,
    "UINT8": dtypes.uint8,
    "UINT16": dtypes.uint16,
    "UINT32": dtypes.uint32,
    "UINT64": dtypes.uint64,
    "INT8": dtypes.int8,
    "INT16": dtypes.int16,
    "INT32": dtypes.int32,
    "INT64": dtypes.int64,
    "FP16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "FP32": dtypes.float32,
    "FP64": dtypes.float64,
}
_DATATYPES = {dtype: name for name, dtype in _NAMES.items()}
_KINDS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}  # of NumPy's arrays that a dtype takes


class Spec(NamedTuple):
    """A tensor that a model takes or gives; a size of -1 is any."""

    name: str
    dtype: DType
    shape: Shape

    @property
    def datatype(self) -> str:
        """The protocol's name of the dtype.

        >>> Spec("data", dtypes.float32, (-1, 3)).datatype
        'FP32'
        """
        return _DATATYPES[self.dtype]

    def described(self) -> dict[str, Any]:
        """What the protocol's metadata say of it."""
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}

    def check_datatype(self, where: str, given: object) -> None:
        """Raises ParamError where a request names another dtype."""
        if given != self.datatype:
            raise ParamError(complaint(where, self.name, f"datatype {self.datatype}", repr(given)))

    def check_shape(self, where: str, given: object) -> Shape:
        """The shape of a request's tensor; ParamError where the model takes another one."""
        found = tuple(given) if isinstance(given, list) else None
        fits = (
            found is not None
            and all(type(size) is int and size > 0 for size in found)
            and len(found) == len(self.shape)
            and all(size in (ANY, n) for size, n in zip(self.shape, found, strict=True))
        )
        if not fits or found is None:
            expected = f"shape {list(self.shape)}" + " (-1 is any size from 1)" * (
                ANY in self.shape
            )
            raise ParamError(complaint(where, self.name, expected, f"shape {given!r:.80}"))
        return found


def from_json(where: str, spec: Spec, shape: Shape, data: object) -> Values:
    """The array that numbers say: nested lists of this shape, or one list in row-major order.

    >>> from_json("mlp", Spec("x", dtypes.int8, (2, 2)), (2, 2), [1, 2, 3, 4])
    array([[1, 2],
           [3, 4]], dtype=int8)

    Raises:
        ParamError: other sizes, no numbers, or numbers that the dtype does not hold.
    """
    try:
        found = np.array(data if isinstance(data, list) else None)
    except ValueError:  # lists of unequal lengths
        found = np.array(None)
    if found.shape not in (shape, (prod(shape),)):
        expected = f"numbers of shape {list(shape)}, nested or in one list"
        got = f"shape {list(found.shape)}" if found.ndim else f"{data!r:.40}"
        raise ParamError(complaint(where, spec.name, expected, got))
    if found.dtype.kind not in _KINDS[spec.dtype.kind] or not _holds(spec.dtype, found):
        expected = f"{'truths' if spec.dtype.kind == 'b' else 'numbers'} that {spec.datatype} holds"
        raise ParamError(complaint(where, spec.name, expected, f"{data!r:.40}"))
    with np.errstate(over="ignore"):  # what half precision does not hold is infinite
        return found.astype(spec.dtype.numpy).reshape(shape)


def _holds(dtype: DType, found: Values) -> bool:
    """Whether integers fit into an integer type; floating types take any."""
    if dtype.kind not in "iu":
        return True
    low, high = dtype.limits
    return bool(low <= int(found.min()) and int(found.max()) <= high)


def from_bytes(where: str, spec: Spec, shape: Shape, data: memoryview) -> Values:
    """The array whose elements these are, in row-major order, the lowest byte first; no copy.

    Raises:
        ParamError: too few or too many bytes, or a truth that is neither 0 nor 1.
    """
    count = prod(shape)
    if len(data) != count * spec.dtype.size:
        expected = f"{count * spec.dtype.size} bytes for shape {list(shape)} of {spec.datatype}"
        raise ParamError(complaint(where, spec.name, expected, f"binary_data_size {len(data)}"))
    if spec.dtype.kind == "b" and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise ParamError(complaint(where, spec.name, "bytes 0 and 1 for BOOL", "other bytes"))
    return np.frombuffer(data, spec.dtype.numpy).reshape(shape)


def to_json(values: Values) -> list[Any]:
    """The elements in row-major order, for JSON; they read back to the same bits."""
    if values.dtype.kind == "V":  # bfloat16
        values = values.astype(np.float32)
    flat: list[Any] = values.reshape(-1).tolist()
    return flat


def to_bytes(values: Values) -> memoryview:
    """The elements in row-major order as bytes, without a copy where they lie in a row."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def checked_shape(where: str, sizes: Sequence[Any]) -> Shape:
    """The shape of these sizes, each from 1, or -1 for any.

    Raises:
        ParamError: something else.
    """
    listed = isinstance(sizes, (list, tuple))
    if not listed or not all(type(n) is int and (n > 0 or n == ANY) for n in sizes):
        expected = "sizes from 1, or -1 for any, as [3, 224, 224]"
        raise ParamError(complaint(where, "shape", expected, repr(sizes)))
    return tuple(sizes)
