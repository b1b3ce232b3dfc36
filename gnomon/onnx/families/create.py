"""Tensors out of nothing: constants, sequences of numbers, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.onnx.fold import bounded
from gnomon.onnx.library import element
from gnomon.onnx.reader import OnnxCall, Reader, dtype_of
from gnomon.onnx.table import Unsupported, reads, writes, writes_as
from gnomon.onnx.writer import Call, Writer, fixed


@writes("_zeros _ones _full _zeros_without_dtype", "ConstantOfShape")
def write_full(w: Writer, x: Call) -> str:
    value = {"_full": getattr(x.op, "value", 0), "_ones": 1}.get(x.op.name, 0)
    return filled(w, w.sizes(x.out_shape()), value, x.out_dtype())


def filled(w: Writer, shape: str, value: float, dtype: Any) -> str:
    """A tensor of a shape with one value everywhere."""
    tensor = w.tensor(np.full(1, value, dtype.numpy))
    return w.op("ConstantOfShape", shape, value=tensor)


@writes("zeros_like ones_like", "Shape ConstantOfShape")
def write_like(w: Writer, x: Call) -> str:
    value = int(x.op.name == "ones_like")
    return filled(w, w.op("Shape", x.inputs[0]), value, x.out_dtype())


@writes("_arange _linspace _eye", "")
def write_sequence(w: Writer, x: Call) -> str:
    """Nothing depends on inputs: a constant of the values."""
    shape = fixed(x.out_shape(), "of the output")
    if x.op.name == "_eye":
        return w.const(np.eye(shape[0], shape[1], x.op.k), x.out_dtype())
    if x.op.name == "_linspace":
        values = np.linspace(x.op.start, x.op.stop, x.op.num, endpoint=x.op.endpoint)
        return w.const(values, x.out_dtype())
    steps = np.arange(shape[0]) // x.op.repeat
    return w.const(x.op.start + steps * x.op.step, x.out_dtype())


@writes("_contrib_arange_like", "Shape Gather Cast Range Mul Add Size Reshape")
def write_arange_like(w: Writer, x: Call) -> str:
    op = x.op
    if op.repeat != 1:
        raise Unsupported(f"repeat = {op.repeat}")
    shape = x.out_shape()
    if all(isinstance(size, int) for size in shape):
        count = int(np.prod(shape))
        values = (op.start + np.arange(count) * op.step).reshape(shape)
        return w.const(values, x.out_dtype())
    if op.axis is None:
        size = w.op("Size", x.inputs[0])
    else:
        axis = x.axis(op.axis)
        size = w.op("Gather", w.op("Shape", x.inputs[0]), w.const(axis))
    steps = w.cast(w.op("Range", w.const(0), size, w.const(1)), x.out_dtype())
    scaled = w.op("Mul", steps, w.const(op.step, x.out_dtype()))
    found = w.op("Add", scaled, w.const(op.start, x.out_dtype()))
    return found if op.axis is not None else w.op("Reshape", found, w.op("Shape", x.inputs[0]))


@writes("_random_uniform", "RandomUniform")
def write_uniform(w: Writer, x: Call) -> str:
    shape = list(fixed(x.out_shape(), "of the output"))
    bounds = {"low": float(x.op.low), "high": float(x.op.high)}
    return w.op("RandomUniform", shape=shape, dtype=element(x.out_dtype()), **bounds)


@writes("_random_normal", "RandomNormal")
def write_normal(w: Writer, x: Call) -> str:
    shape = list(fixed(x.out_shape(), "of the output"))
    given = {"mean": float(x.op.loc), "scale": float(x.op.scale)}
    return w.op("RandomNormal", shape=shape, dtype=element(x.out_dtype()), **given)


writes_as("_random_uniform_like", "RandomUniformLike", low="low", high="high")
writes_as("_random_normal_like", "RandomNormalLike", mean="loc", scale="scale")


def _random(n: OnnxCall, **names: Any) -> dict[str, Any]:
    given = {mine: n.attr(theirs, default) for mine, (theirs, default) in names.items()}
    if n.has(0):
        return given
    dtype = dtype_of(n.attr("dtype", 1)).name
    return given | {"shape": tuple(n.need("shape")), "dtype": dtype}


@reads("RandomUniform RandomUniformLike")
def read_uniform(r: Reader, n: OnnxCall) -> Any:
    given = _random(n, low=("low", 0.0), high=("high", 1.0))
    like = n.symbols()
    return r.op("_random_uniform_like" if like else "_random_uniform", *like, **given)


@reads("RandomNormal RandomNormalLike")
def read_normal(r: Reader, n: OnnxCall) -> Any:
    given = _random(n, loc=("mean", 0.0), scale=("scale", 1.0))
    like = n.symbols()
    return r.op("_random_normal_like" if like else "_random_normal", *like, **given)


@writes("_sample_multinomial", "Log Multinomial Reshape Cast")
def write_multinomial(w: Writer, x: Call) -> str:
    if x.op.get_prob or x.rank() != 2:
        raise Unsupported("get_prob, or other than two axes")
    count = int(np.prod(x.op.shape or (1,)))
    found = w.op("Multinomial", w.op("Log", x.inputs[0]), sample_size=count, dtype=6)
    if x.out_shape() != (x.shape()[0], count):
        codes = [s if isinstance(s, int) else -1 for s in x.out_shape()]
        found = w.op("Reshape", found, w.const(codes))
    return found if x.out_dtype().name == "int32" else w.cast(found, x.out_dtype())


@reads("Multinomial")
def read_multinomial(r: Reader, n: OnnxCall) -> Any:
    """ONNX gives logarithms, MXNet takes probabilities."""
    dtype = dtype_of(n.attr("dtype", 6)).name
    shares = r.op("softmax", n.symbol())
    count = n.attr("sample_size", 1)
    return r.op("_sample_multinomial", shares, shape=(count,), dtype=dtype)


@reads("ConstantOfShape")
def read_constant_of_shape(r: Reader, n: OnnxCall) -> Any:
    n.const(0)
    raise Unsupported("its shape holds sizes that the inputs' shapes leave open")


@reads("Range")
def read_range(r: Reader, n: OnnxCall) -> Any:
    for k in range(3):
        n.const(k)
    raise Unsupported("its bounds hold sizes that the inputs' shapes leave open")


@reads("EyeLike")
def read_eye_like(r: Reader, n: OnnxCall) -> Any:
    number = n.attr("dtype")
    dtype = n.dtype() if number is None else dtype_of(number)
    rows, columns = bounded(n.dims())
    return np.eye(rows, columns, n.attr("k", 0), dtype=dtype.numpy)
