"""Constants computed when a model is read: what exporters write to calculate shapes.

Arrays of shapes may hold a `Dim`, a size that is not known when the model is read; they are arrays
of objects then, which may be gathered, cut and joined like any other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon.base import FormatError
from gnomon.ground.tables import entering
from gnomon.onnx.library import NAMES, onnx

LIMIT = 1 << 22  # elements of what a folded operator may make out of less
OPEN = frozenset(
    "Gather Slice Concat Unsqueeze Squeeze Identity Cast Reshape Split Mul Shape".split()
)


class Dim:
    """A size that is not known: that of an axis of a value, or (axis None) computed of one."""

    def __init__(self, axis: int | None = None) -> None:
        self.axis = axis

    def __mul__(self, other: Any) -> Any:
        """Times 1 it stays what it is."""
        return self if other == 1 else Dim()

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "?"


#: what ONNX operators give for constant arrays: functions of the call and them
FOLDS: dict[str, Callable[..., Any]] = {
    "CastLike": lambda call, x, like: x.astype(like.dtype),
    "Concat": lambda call, *arrays: np.concatenate(arrays, axis=call.need("axis")),
    "Gather": lambda call, x, k: np.take(x, k.astype(np.int64), axis=call.attr("axis", 0)),
    "Identity": lambda call, x: x,
    "Mod": lambda call, a, b: (np.fmod if call.attr("fmod", 0) else np.mod)(a, b),
    "NonZero": lambda call, x: np.asarray(np.nonzero(x), np.int64),
    "Not": lambda call, x: np.logical_not(x),
    "Slice": lambda call, x, *parts: x[slices(call, x.ndim, parts)],
    "Transpose": lambda call, x: x.transpose(call.attr("perm")),
    "Unsqueeze": lambda call, x, axes=None: np.expand_dims(x, tuple(_axes(call, axes) or ())),
    "Where": lambda call, condition, a, b: np.where(condition, a, b),
}


fold = entering(FOLDS)  # functions that take more lines


def folded(call: Any) -> list[np.ndarray[Any, Any]] | None:
    """The outputs of a node as arrays; None where it has to be computed when the network runs.

    Raises:
        FormatError: the node's inputs do not go together.
    """
    kind = call.node.op_type if call.node.domain in ("", "ai.onnx") else ""
    if kind in ("Shape", "Size"):
        return _of_shape(call, kind)
    if kind not in FOLDS:
        return None
    arrays = [None if v is None else v.array for v in call.values]
    if any(a is None and v is not None for a, v in zip(arrays, call.values, strict=True)):
        return None
    given = [a for a in arrays if a is not None]
    if any(a.dtype == object for a in given) and kind not in OPEN:
        return None
    if sum(a.size for a in given) > LIMIT:  # a weight: computed by the network
        return None
    with np.errstate(all="ignore"):
        found = FOLDS[kind](call, *arrays)
    results = found if isinstance(found, list) else [found]
    return [np.asarray(a) for a in results]


def _of_shape(call: Any, kind: str) -> list[np.ndarray[Any, Any]] | None:
    shape = call.shape()
    if shape is None:
        return None
    sizes = [Dim(k) if size < 0 else size for k, size in enumerate(shape)]
    known = not any(isinstance(size, Dim) for size in sizes)
    if kind == "Size":
        return [np.asarray(int(np.prod(shape, dtype=np.int64)), np.int64)] if known else None
    array = np.empty(len(sizes), np.int64 if known else object)
    array[:] = sizes
    return [array[call.attr("start", 0) : call.attr("end", len(sizes))]]


def bounded(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape that a constant may have.

    Raises:
        FormatError: it has too many elements, or a negative size.
    """
    sizes = tuple(int(size) for size in shape)
    count = 1
    for size in sizes:
        count *= size
    if count > LIMIT or min(sizes, default=0) < 0:
        raise FormatError(f"expected a constant of at most {LIMIT} elements, got shape {sizes}")
    return sizes


def _axes(call: Any, given: Any) -> list[int] | None:
    if given is not None:
        return [int(a) for a in given.reshape(-1)]
    return call.attr("axes")  # type: ignore[no-any-return]


@fold("Constant")
def _constant(call: Any) -> Any:
    helper = onnx("numpy_helper")
    for name, dtype in (("value_float", "f4"), ("value_floats", "f4"), ("value_int", "i8")):
        if (value := call.attr(name)) is not None:
            return np.asarray(value, dtype)
    if (value := call.attr("value_ints")) is not None:
        return np.asarray(value, "i8")
    return helper.to_array(call.need("value"))


@fold("Cast")
def _cast(call: Any, x: Any) -> Any:
    name = NAMES.get(call.need("to"))
    if name is None:
        raise FormatError(f"Cast: element type {call.need('to')} is not known")
    if x.dtype == object:
        return x
    return x.astype(onnx("helper").tensor_dtype_to_np_dtype(call.need("to")))


def slices(call: Any, rank: int, parts: Sequence[Any]) -> tuple[slice, ...]:
    """The slices of a `Slice` along all axes; parts are its inputs after the first."""
    names = ("starts", "ends", "axes", "steps")
    given = [None if p is None else p.reshape(-1).tolist() for p in parts]
    given += [None] * (4 - len(given))
    starts, ends, axes, steps = (g or call.attr(n) for g, n in zip(given, names, strict=True))
    if starts is None or ends is None:
        raise FormatError("Slice: expected starts and ends")
    found = [slice(None)] * rank
    axes = range(len(starts)) if axes is None else axes
    rows = zip(axes, starts, ends, steps or [1] * len(starts), strict=True)
    for axis, start, end, step in rows:
        if not -rank <= axis < rank:
            raise FormatError(f"Slice: axis {axis} of {rank} axes")
        found[axis] = slice(
            _near(start), None if step < 0 and end < -(1 << 30) else _near(end), step
        )
    return tuple(found)


def _near(place: int) -> int:
    return int(max(min(place, 1 << 40), -(1 << 40)))


@fold("Squeeze")
def _squeeze(call: Any, x: Any, axes: Any = None) -> Any:
    found = _axes(call, axes)
    return np.squeeze(x, None if found is None else tuple(found))


@fold("Reshape")
def _reshape(call: Any, x: Any, shape: Any = None) -> Any:
    new = call.attr("shape") if shape is None else shape.tolist()
    if not call.attr("allowzero", 0):
        new = [x.shape[k] if size == 0 else size for k, size in enumerate(new)]
    return x.reshape(new)


@fold("Split")
def _split(call: Any, x: Any, split: Any = None) -> Any:
    axis, parts = call.attr("axis", 0), call.attr("split") if split is None else split.tolist()
    if parts is None:
        return np.array_split(x, call.outputs, axis=axis)
    return np.split(x, np.cumsum(parts)[:-1].astype(int), axis=axis)


@fold("ConstantOfShape")
def _constant_of_shape(call: Any, shape: Any) -> Any:
    value = call.attr("value")
    fill = np.zeros(1, np.float32) if value is None else onnx("numpy_helper").to_array(value)
    return np.full(bounded(shape.tolist()), fill.reshape(-1)[0], fill.dtype)


@fold("Range")
def _range(call: Any, start: Any, limit: Any, delta: Any) -> Any:
    count = np.ceil((limit.item() - start.item()) / delta.item())
    bounded([max(count, 0)])
    return np.arange(max(int(count), 0)).astype(start.dtype) * delta.item() + start


@fold("Expand")
def _expand(call: Any, x: Any, shape: Any) -> Any:
    new = np.broadcast_shapes(x.shape, bounded(shape.tolist()))
    return np.broadcast_to(x, bounded(new)).copy()


@fold("Tile")
def _tile(call: Any, x: Any, repeats: Any) -> Any:
    bounded([size * int(n) for size, n in zip(x.shape, repeats, strict=True)])
    return np.tile(x, repeats.astype(np.int64))


@fold("Div")
def _div(call: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return a / b
    if not np.all(b):
        raise FormatError("Div: integers divided by 0")
    return np.trunc(a / b).astype(a.dtype)


def _binary(name: str, function: Any) -> None:
    def apply(call: Any, *arrays: Any) -> Any:
        result = arrays[0]
        for other in arrays[1:]:
            bounded(np.broadcast_shapes(result.shape, other.shape))
            result = np.asarray(function(result, other))
        return result

    FOLDS[name] = apply


for _name, _function in {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": operator.mul,
    "Max": np.maximum,
    "Min": np.minimum,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
}.items():
    _binary(_name, _function)


def _unary(function: Any) -> Any:
    return lambda call, x: np.asarray(function(x)).astype(x.dtype)


for _name, _function in {
    "Neg": np.negative,
    "Abs": np.abs,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Sqrt": np.sqrt,
}.items():
    FOLDS[_name] = _unary(_function)


def _reduce(name: str, function: Any) -> None:
    def apply(call: Any, x: Any, axes: Any = None) -> Any:
        found = _axes(call, axes)
        if not found and call.attr("noop_with_empty_axes", 0):
            return x
        keep = bool(call.attr("keepdims", 1))
        return function(x, axis=tuple(found) if found else None, keepdims=keep, dtype=x.dtype)

    FOLDS[name] = apply


_reduce("ReduceProd", np.prod)
_reduce("ReduceSum", np.sum)
