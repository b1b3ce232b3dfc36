"""Normalizations: over the batch, over channels, over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.onnx.families.reduce import reduce
from gnomon.onnx.reader import OnnxCall, Reader, normal
from gnomon.onnx.table import Unsupported, pair, reads, writes, writes_as
from gnomon.onnx.writer import Call, Writer


def swapped(rank: int, axis: int) -> list[int]:
    """The order of axes that puts the channels second, or the same axes back."""
    order = list(range(rank))
    order[1], order[axis] = order[axis], order[1]
    return order


@writes(
    "BatchNorm _contrib_SyncBatchNorm _contrib_BatchNormWithReLU",
    "BatchNormalization Transpose Cast Relu",
)
def write_batch_norm(w: Writer, x: Call) -> str:
    if x.op.num_visible_outputs != 1:
        raise Unsupported("output_mean_var = True")
    op, (data, gamma, *rest) = x.op, x.inputs
    if op.fix_gamma:
        gamma = w.const(np.ones(x.dims(1)), x.dtype(1))
    axis = x.axis(op.axis) if hasattr(op, "axis") else 1
    order = swapped(x.rank(), axis) if axis != 1 else None
    data = w.op("Transpose", data, perm=order) if order else data
    made = w.op("BatchNormalization", data, gamma, *rest, epsilon=op.eps, momentum=op.momentum)
    made = w.op("Transpose", made, perm=order) if order else made
    return w.op("Relu", made) if op.name.endswith("ReLU") else made


@reads("BatchNormalization")
def read_batch_norm(r: Reader, n: OnnxCall) -> Any:
    if n.attr("training_mode", 0) or not n.attr("is_test", 1):
        raise Unsupported("training_mode is true: a network is read as it predicts")
    eps = n.attr("epsilon", 1e-5)
    if all(n.value(k).array is not None for k in (3, 4)):
        states = [n.symbol(3), n.symbol(4)]
        if n.value(3).array is n.value(4).array:
            states[1] = r.op("_copy", states[1])
        r.states |= {s.name for s in states}
        momentum = n.attr("momentum", 0.9)
        given = {"eps": eps, "momentum": momentum, "fix_gamma": False, "use_global_stats": False}
        return r.op("BatchNorm", n.symbol(), n.symbol(1), n.symbol(2), *states, **given)
    gamma, beta, mean, var = (per_channel(r, n.symbol(k), n.rank()) for k in (1, 2, 3, 4))
    away = r.op("broadcast_sub", n.symbol(), mean)
    scale = r.op("broadcast_mul", gamma, r.op("rsqrt", r.op("_plus_scalar", var, scalar=eps)))
    return r.op("broadcast_add", r.op("broadcast_mul", away, scale), beta)


def per_channel(r: Reader, values: Any, rank: int) -> Any:
    """One value a channel, to be stretched over the other axes."""
    return r.op("Reshape", values, shape=(-1, *[1] * (rank - 2))) if rank > 2 else values


def _normalized(w: Writer, data: str, axes: Sequence[int], eps: float, dtype: Any) -> list[str]:
    """`data` with mean 0 and variance 1 over axes, the mean, and the root of the variance."""
    mean = reduce(w, "ReduceMean", data, axes, True)
    away = w.op("Sub", data, mean)
    variance = reduce(w, "ReduceMean", w.op("Mul", away, away), axes, True)
    deviation = w.op("Sqrt", w.op("Add", variance, w.const(eps, dtype)))
    return [w.op("Div", away, deviation), mean, deviation]


@writes("LayerNorm", "LayerNormalization ReduceMean Sub Mul Add Sqrt Div Reshape")
def write_layer_norm(w: Writer, x: Call) -> Any:
    op, (data, gamma, beta) = x.op, x.inputs
    axis, rank = x.axis(op.axis), x.rank()
    if axis == rank - 1 and not op.output_mean_var:
        return w.op("LayerNormalization", data, gamma, beta, axis=-1, epsilon=op.eps)
    y, mean, deviation = _normalized(w, data, [axis], op.eps, x.dtype())
    shape = w.const([-1 if k == axis else 1 for k in range(rank)])
    y = w.op("Mul", y, w.op("Reshape", gamma, shape))
    y = w.op("Add", y, w.op("Reshape", beta, shape))
    return [y, mean, deviation] if op.output_mean_var else y


def normalized(r: Reader, x: Any, axes: Sequence[int], eps: float) -> tuple[Any, Any, Any]:
    """A symbol with mean 0 and variance 1 over axes, the mean, and 1 by the root of variance."""
    mean = r.op("mean", x, axis=tuple(axes), keepdims=True)
    away = r.op("broadcast_sub", x, mean)
    variance = r.op("mean", r.op("square", away), axis=tuple(axes), keepdims=True)
    inverse = r.op("rsqrt", r.op("_plus_scalar", variance, scalar=eps))
    return r.op("broadcast_mul", away, inverse), mean, inverse


@reads("LayerNormalization")
def read_layer_norm(r: Reader, n: OnnxCall) -> Any:
    x, axis, eps = n.symbol(), n.axis(-1), n.attr("epsilon", 1e-5)
    rank = n.rank()
    if axis == rank - 1 and n.has(2) and n.outputs == 1 and n.rank(1) == n.rank(2) == 1:
        given = {"axis": -1, "eps": eps}
        return r.op("LayerNorm", x, n.symbol(1), n.symbol(2), **given)
    y, mean, inverse = normalized(r, x, range(axis, rank), eps)
    y = r.op("broadcast_mul", y, n.symbol(1))
    y = r.op("broadcast_add", y, n.symbol(2)) if n.has(2) else y
    return [y, mean, inverse][: n.outputs]


@reads("RMSNormalization SimplifiedLayerNormalization")
def read_rms_norm(r: Reader, n: OnnxCall) -> Any:
    x, axis, eps = n.symbol(), n.axis(-1), n.attr("epsilon", 1e-5)
    axes = tuple(range(axis, n.rank()))
    square = r.op("mean", r.op("square", x), axis=axes, keepdims=True)
    inverse = r.op("rsqrt", r.op("_plus_scalar", square, scalar=eps))
    return r.op("broadcast_mul", r.op("broadcast_mul", x, inverse), n.symbol(1))


pair("InstanceNorm", "InstanceNormalization", eps=("epsilon", 1e-5))


@writes("GroupNorm", "Reshape InstanceNormalization Shape")
def write_group_norm(w: Writer, x: Call) -> str:
    if x.op.output_mean_var:
        raise Unsupported("output_mean_var = True")
    data, gamma, beta = x.inputs
    groups = w.op("Reshape", data, w.const([0, x.op.num_groups, -1]))
    made = w.op("InstanceNormalization", groups, gamma, beta, epsilon=x.op.eps)
    return w.op("Reshape", made, w.op("Shape", data))


@reads("GroupNormalization")
def read_group_norm(r: Reader, n: OnnxCall) -> Any:
    """Opset 18 has one scale for each group, 21 one for each channel."""
    groups, rank, eps = n.need("num_groups"), n.rank(), n.attr("epsilon", 1e-5)
    shape = n.dims()
    apart = r.op("Reshape", n.symbol(), shape=(shape[0], groups, -1))
    y = normalized(r, apart, (2,), eps)[0]
    scale, shift = n.symbol(1), n.symbol(2)
    if n.dims(1)[0] == groups:
        y = r.op("broadcast_mul", y, per_channel(r, scale, 3))
        y = r.op("broadcast_add", y, per_channel(r, shift, 3))
        return r.op("Reshape", y, shape=shape)
    y = r.op("Reshape", y, shape=shape)
    y = r.op("broadcast_mul", y, per_channel(r, scale, rank))
    return r.op("broadcast_add", y, per_channel(r, shift, rank))


@writes("L2Normalization", "Mul ReduceSum Add Sqrt Div")
def write_l2(w: Writer, x: Call) -> str:
    rank, data = x.rank(), x.inputs[0]
    axes = {"instance": range(1, rank), "channel": [1], "spatial": range(2, rank)}[x.op.mode]
    total = reduce(w, "ReduceSum", w.op("Mul", data, data), list(axes), True)
    return w.op("Div", data, w.op("Sqrt", w.op("Add", total, w.const(x.op.eps, x.dtype()))))


@reads("LpNormalization")
def read_lp(r: Reader, n: OnnxCall) -> Any:
    """What is 0 stays 0."""
    x, axis, p = n.symbol(), n.axis(-1), n.attr("p", 2)
    length = r.op("norm", x, ord=p, axis=(axis,), keepdims=True)
    zero = r.op("_equal_scalar", length, scalar=0)
    return r.op("broadcast_div", x, r.op("elemwise_add", length, zero))


writes_as("LRN", "LRN", alpha="alpha", beta="beta", bias="knorm", size="nsize")


@reads("LRN")
def read_lrn(r: Reader, n: OnnxCall) -> Any:
    size = n.need("size")
    if size % 2 == 0:
        raise Unsupported(f"size {size}: MXNet's has an odd number of channels")
    given = {"alpha": n.attr("alpha", 1e-4), "beta": n.attr("beta", 0.75)}
    return r.op("LRN", n.symbol(), nsize=size, knorm=n.attr("bias", 1.0), **given)


@reads("MeanVarianceNormalization")
def read_mvn(r: Reader, n: OnnxCall) -> Any:
    axes = [normal(a, n.rank()) for a in n.attr("axes", [0, 2, 3])]
    return normalized(r, n.symbol(), axes, 1e-9)[0]
