"""The border to NDArray: what an executor asks of arrays, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon import ndarray as nd
from gnomon.base import DeviceError, ShapeError, complaint
from gnomon.context import Context
from gnomon.dtype import DType
from gnomon.engine import Var
from gnomon.executor.inputs import Input, own
from gnomon.expr.node import Buffer
from gnomon.ndarray.core.array import Array, of_zeros
from gnomon.ndarray.core.elsewhere import ways
from gnomon.ndarray.core.mode import recording
from gnomon.shape import prod

Shape = tuple[int, ...]


def buffer(array: Any) -> Buffer:
    """The memory of an array as an expression's leaf; what is pending on it is computed."""
    found: Buffer = own(array)._buffer()
    return found


def var(array: Any) -> Var:
    """The engine variable of an array."""
    found: Var = own(array)._var
    return found


def shown(array: Any) -> Any:
    """The array, with its memory: others may look there."""
    pending = array._pending_in
    if isinstance(pending, Input):
        pending.materialize(array)
    return array


def is_shared(var: Var) -> bool:
    """Whether code outside gnomon may write the memory of this variable at any time."""
    return bool(getattr(var, "shared", False))


def in_program(array: Any) -> bool:
    """Whether programs can work on the memory of an array: it has all elements."""
    return array.__class__ is Array.main or array.stype == "default"


def is_here(array: Any) -> bool:
    """Whether native programs can: all elements, in memory of the processor."""
    return array.__class__ is Array.main


def is_array(value: Any) -> bool:
    """Whether `value` is an NDArray."""
    return isinstance(value, nd.NDArray)


def zeros(shape: Shape, ctx: Context, dtype: DType, stype: str = "default") -> Any:
    """A new array of zeros."""
    if stype != "default":
        return nd.zeros(shape, ctx, dtype.name, stype)
    return of_zeros(tuple(shape), dtype, ctx)


def dtype_of(array: Any) -> DType:
    """The dtype of an array."""
    return dtypes.of(array.dtype)


def check(where: str, name: str, dest: Any, value: Any) -> None:
    """Raises ShapeError where `value`, an array of any kind, does not fit into `dest`."""
    shape = tuple(np.shape(value)) if not is_array(value) else value.shape
    if shape != dest.shape:
        raise ShapeError(complaint(where, name, f"shape {dest.shape}", f"shape {shape}"))


def check_context(where: str, name: str, expected: Context, array: Any) -> None:
    """Raises DeviceError where `array` is not on the context that is expected."""
    if array.context != expected:
        raise DeviceError(
            complaint(where, name, f"an array on {expected}", f"one on {array.context}")
        )


def assign(dest: Any, value: Any) -> None:
    """Copy `value`, an NDArray or anything NumPy takes, into the array `dest`; never recorded."""
    if value is dest:
        return
    if not is_here(dest) and is_array(value) and dest._layout is value._layout:
        way = ways.get(dest.context.device_typeid)
        if way is not None and dest.stype == value.stype == "default":
            way.move(value, dest)
            return
    if isinstance(dest._pending_in, Input):
        dest._pending_in.forget()
    with recording(False):
        own(dest)[:] = value if is_array(value) else np.asarray(value)


def unique(where: str, names: Sequence[str], arrays: Sequence[Any]) -> dict[str, Any]:
    """`arrays` by name.

    Raises:
        ValueError: two of one name.
    """
    found = dict(zip(names, arrays, strict=True))
    if len(found) < len(names):
        twice = sorted({n for n in names if list(names).count(n) > 1})
        raise ValueError(f"{where}: the names {', '.join(twice)} stand for several arrays")
    return found


def head(array: Any, shape: Shape) -> Any:
    """The first elements of `array`, in another shape, in the same memory; a new sparse array."""
    if array.stype != "default":
        return zeros(shape, array.context, dtype_of(array), array.stype)
    return array.reshape((-1,))[: prod(shape)].reshape(shape)
