"""Reductions: sums, extremes and norms over axes, positions of extremes, sorting, running sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.onnx.families.elementwise import cast
from gnomon.onnx.reader import OnnxCall, Reader, Scalar, normal
from gnomon.onnx.table import Unsupported, reads, writes
from gnomon.onnx.writer import Call, Writer

_REDUCE = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "max": "ReduceMax"}
_REDUCE["min"] = "ReduceMin"


def reduce(w: Writer, kind: str, name: str, axes: Sequence[int], keepdims: bool) -> str:
    """`name` reduced over axes by an operator of ONNX; of all sizes that are left, (1,) if none."""
    if kind == "ReduceSum":
        return w.axes_op(kind, name, axes, keepdims=int(keepdims))
    return w.op(kind, name, axes=list(axes), keepdims=int(keepdims))


def shaped(w: Writer, x: Call, name: str, all_axes: bool) -> str:
    """What was reduced over all axes has one axis in MXNet."""
    return w.op("Reshape", name, w.const([1])) if all_axes else name


def _write_reduce(kind: str) -> Any:
    def write(w: Writer, x: Call) -> str:
        axes = x.op.axes(x.rank())
        result = reduce(w, kind, x.inputs[0], axes, x.op.keepdims)
        return shaped(w, x, result, len(axes) == x.rank() and not x.op.keepdims)

    return write


for _name, _kind in _REDUCE.items():
    writes(_name, f"{_kind} Reshape")(_write_reduce(_kind))


@writes("_square_sum", "ReduceSumSquare Reshape")
def write_square_sum(w: Writer, x: Call) -> str:
    return str(_write_reduce("ReduceSumSquare")(w, x))


@writes("norm", "Cast ReduceL1 ReduceL2 Reshape")
def write_norm(w: Writer, x: Call) -> str:
    if x.out_dtype() is not x.dtype():
        x.inputs[0] = w.cast(x.inputs[0], x.out_dtype())
    return str(_write_reduce("ReduceL1" if x.op.ord == 1 else "ReduceL2")(w, x))


@writes("moments", "ReduceMean Sub Mul Reshape")
def write_moments(w: Writer, x: Call) -> list[str]:
    data, axes, keep = x.inputs[0], x.op.over(x.rank()), x.op.keepdims
    mean = reduce(w, "ReduceMean", data, axes, True)
    away = w.op("Sub", data, mean)
    variance = reduce(w, "ReduceMean", w.op("Mul", away, away), axes, keep)
    whole = len(axes) == x.rank() and not keep
    mean = mean if keep else reduce(w, "ReduceMean", data, axes, False)
    return [shaped(w, x, mean, whole), shaped(w, x, variance, whole)]


def reduced(r: Reader, n: OnnxCall, name: str, x: Any, **more: Any) -> Any:
    """The reduction `name` of a symbol, over the axes that the node says, as attribute or input."""
    axes, keep = n.ints("axes", 1), bool(n.attr("keepdims", 1))
    rank = n.rank()
    if not axes and n.attr("noop_with_empty_axes", 0):
        return x
    axes = sorted(normal(a, rank) for a in axes) if axes else list(range(rank))
    if rank == 0:
        return Scalar(x)
    result = r.op(name, x, axis=tuple(axes), keepdims=keep, **more)
    return Scalar(result) if len(axes) == rank and not keep else result


def _read_reduce(name: str) -> Any:
    return lambda r, n: reduced(r, n, name, n.symbol())


for _name, _kind in _REDUCE.items():
    reads(_kind)(_read_reduce(_name))


@reads("ReduceSumSquare")
def read_sum_square(r: Reader, n: OnnxCall) -> Any:
    return reduced(r, n, "sum", r.op("square", n.symbol()))


@reads("ReduceL1")
def read_l1(r: Reader, n: OnnxCall) -> Any:
    return reduced(r, n, "sum", r.op("abs", n.symbol()))


def after(r: Reader, result: Any, name: str) -> Any:
    """An operator of what may be a scalar."""
    if isinstance(result, Scalar):
        return Scalar(r.op(name, result.symbol))
    return r.op(name, result)


@reads("ReduceL2")
def read_l2(r: Reader, n: OnnxCall) -> Any:
    return after(r, reduced(r, n, "sum", r.op("square", n.symbol())), "sqrt")


@reads("ReduceLogSum")
def read_log_sum(r: Reader, n: OnnxCall) -> Any:
    return after(r, reduced(r, n, "sum", n.symbol()), "log")


@reads("ReduceLogSumExp")
def read_log_sum_exp(r: Reader, n: OnnxCall) -> Any:
    """Less the greatest value of all, so that nothing overflows."""
    x = n.symbol()
    top = r.op("max", x)
    away = r.op("exp", r.op("broadcast_sub", x, r.op("reshape", top, shape=(1,) * n.rank())))
    result = after(r, reduced(r, n, "sum", away), "log")
    if isinstance(result, Scalar):
        return Scalar(r.op("broadcast_add", result.symbol, top))
    return r.op("broadcast_add", result, top)


# positions -------------------------------------------------------------------------------------


@writes("argmax argmin argmax_channel", "ArgMax ArgMin Reshape Cast")
def write_position(w: Writer, x: Call) -> str:
    kind = "ArgMin" if x.op.name == "argmin" else "ArgMax"
    axis = 1 if x.op.name == "argmax_channel" else x.op.axis
    keep = getattr(x.op, "keepdims", False)
    if axis is None:
        flat = w.op("Reshape", x.inputs[0], w.const([-1]))
        found = w.op(kind, flat, axis=0, keepdims=1)
        if keep:
            found = w.op("Reshape", found, w.const([1] * x.rank()))
    else:
        found = w.op(kind, x.inputs[0], axis=axis, keepdims=int(keep))
        found = shaped(w, x, found, x.rank() == 1 and not keep)
    return w.cast(found, x.out_dtype())


def _read_position(name: str) -> Any:
    def read(r: Reader, n: OnnxCall) -> Any:
        x, axis, keep = n.symbol(), n.axis(0), bool(n.attr("keepdims", 1))
        if n.attr("select_last_index", 0):
            size = n.dims()[axis]
            found = r.op(name, r.op("reverse", x, axis=axis), axis=axis, keepdims=keep)
            found = r.op("_rminus_scalar", found, scalar=float(size - 1))
        else:
            found = r.op(name, x, axis=axis, keepdims=keep)
        found = cast(r, found, "int64")
        return Scalar(found) if n.rank() == 1 and not keep else found

    return read


reads("ArgMax")(_read_position("argmax"))
reads("ArgMin")(_read_position("argmin"))


def _top(w: Writer, x: Call, axis: int | None, k: int, ascending: bool) -> list[str]:
    """Values and positions, in order, of the first `k` along an axis; of all where `k` is 0."""
    data = x.inputs[0] if axis is not None else w.op("Reshape", x.inputs[0], w.const([-1]))
    axis = 0 if axis is None else x.axis(axis)
    if k <= 0:
        size = w.op("Shape", data)
        count = w.op("Slice", size, w.const([axis]), w.const([axis + 1]))
    else:
        count = w.const([k])
    return w.many("TopK", 2, data, count, axis=axis, largest=int(not ascending), sorted=1)


@writes("sort", "Reshape Shape Slice TopK")
def write_sort(w: Writer, x: Call) -> str:
    return _top(w, x, x.op.axis, 0, x.op.is_ascend)[0]


@writes("argsort", "Reshape Shape Slice TopK Cast")
def write_argsort(w: Writer, x: Call) -> str:
    return w.cast(_top(w, x, x.op.axis, 0, x.op.is_ascend)[1], x.out_dtype())


@writes("topk", "Reshape Shape Slice TopK Cast")
def write_topk(w: Writer, x: Call) -> Any:
    kind = x.op.ret_typ
    if kind == "mask":
        raise Unsupported("ret_typ = 'mask'")
    values, places = _top(w, x, x.op.axis, x.op.k, x.op.is_ascend)
    if kind == "value":
        return values
    places = w.cast(places, x.out_dtype(1 if kind == "both" else 0))
    return [values, places] if kind == "both" else places


@reads("TopK")
def read_topk(r: Reader, n: OnnxCall) -> Any:
    count = n.attr("k") if n.attr("k") is not None else int(n.const(1).item())
    axis = n.axis(-1)
    if n.dims()[axis] == 0 or count == 0:
        raise Unsupported("no elements")
    given = {"axis": axis, "k": count, "is_ascend": not n.attr("largest", 1)}
    found = r.op("topk", n.symbol(), ret_typ="both", dtype="int64", **given)
    return [found[0], found[1]]


@writes("_np_cumsum", "Reshape Cast CumSum")
def write_cumsum(w: Writer, x: Call) -> str:
    data, axis = x.inputs[0], x.op.axis
    if axis is None:
        data, axis = w.op("Reshape", data, w.const([-1])), 0
    if x.out_dtype() is not x.dtype():
        data = w.cast(data, x.out_dtype())
    return w.op("CumSum", data, w.const(np.int64(axis)))


@reads("CumSum")
def read_cumsum(r: Reader, n: OnnxCall) -> Any:
    x, axis = n.symbol(), normal(int(n.const(1).item()), n.rank())
    reverse, exclusive = n.attr("reverse", 0), n.attr("exclusive", 0)
    given = r.op("reverse", x, axis=axis) if reverse else x
    found = r.op("cumsum", given, axis=axis)
    if exclusive:
        found = r.op("elemwise_sub", found, given)
    return r.op("reverse", found, axis=axis) if reverse else found
