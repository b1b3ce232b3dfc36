"""Activations, softmax and the outputs that a network is trained by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.onnx.families.elementwise import cast
from gnomon.onnx.reader import OnnxCall, Reader
from gnomon.onnx.table import Unsupported, reads, reads_as, writes
from gnomon.onnx.writer import Call, Writer

_ACTIVATION = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "softrelu": "Softplus",
    "tanh": "Tanh",
    "softsign": "Softsign",
}


@writes("Activation", "Relu Sigmoid Softplus Tanh Softsign")
def write_activation(w: Writer, x: Call) -> str:
    return w.op(_ACTIVATION[x.op.act_type], *x.inputs)


reads_as("Softplus", "Activation", act_type="softrelu")
reads_as("LeakyRelu", "LeakyReLU", act_type="leaky", slope=("alpha", 0.01))
reads_as("Elu", "LeakyReLU", act_type="elu", slope=("alpha", 1.0))


@writes("LeakyReLU", "LeakyRelu Elu Selu PRelu Reshape Div Erf Add Mul")
def write_leaky(w: Writer, x: Call) -> str:
    op, data, kind = x.op, x.inputs[0], x.op.act_type
    if kind == "prelu":
        gamma = x.inputs[1]
        if x.rank() > 2 and x.dims(1) != (1,):
            gamma = w.op("Reshape", gamma, w.const([-1, *[1] * (x.rank() - 2)]))
        return w.op("PRelu", data, gamma)
    if kind == "gelu":
        spread = w.op("Erf", w.op("Div", data, w.const(math.sqrt(2), x.dtype())))
        whole = w.op("Mul", data, w.op("Add", spread, w.const(1, x.dtype())))
        return w.op("Mul", whole, w.const(0.5, x.dtype()))
    if kind == "selu":
        return w.op("Selu", data)
    if kind == "elu":
        return w.op("Elu", data, alpha=op.slope)
    slope = op.slope if kind == "leaky" else (op.lower_bound + op.upper_bound) / 2
    return w.op("LeakyRelu", data, alpha=slope)


@reads("Selu", elementwise=True)
def read_selu(r: Reader, n: OnnxCall) -> Any:
    alpha, gamma = n.attr("alpha", 1.6732632), n.attr("gamma", 1.0507010)
    curve = r.op("LeakyReLU", n.symbol(), act_type="elu", slope=alpha)
    return r.op("_mul_scalar", curve, scalar=gamma)


@reads("PRelu")
def read_prelu(r: Reader, n: OnnxCall) -> Any:
    x, slope = n.symbol(), n.value(1).array
    rank = n.rank()
    if slope is not None and rank > 1 and slope.size in (1, n.shape()[1]):
        wide = (1,) * (rank - slope.ndim) + slope.shape
        if slope.size == 1 or wide[1] == slope.size:
            gamma = r.variable(n.value(1).name, slope.reshape(-1))
            return r.op("LeakyReLU", x, gamma, act_type="prelu")
    below = r.op("broadcast_mul", r.op("_minimum_scalar", x, scalar=0), n.symbol(1))
    return r.op("elemwise_add", r.op("relu", x), below)


@reads("Gelu", elementwise=True)
def read_gelu(r: Reader, n: OnnxCall) -> Any:
    x = n.symbol()
    if n.attr("approximate", "none") == "none":
        return r.op("LeakyReLU", x, act_type="gelu")
    cube = r.op("_mul_scalar", r.op("_power_scalar", x, scalar=3.0), scalar=0.044715)
    inner = r.op("_mul_scalar", r.op("elemwise_add", x, cube), scalar=math.sqrt(2 / math.pi))
    half = r.op("_mul_scalar", x, scalar=0.5)
    return r.op("elemwise_mul", half, r.op("_plus_scalar", r.op("tanh", inner), scalar=1.0))


@reads("Celu", elementwise=True)
def read_celu(r: Reader, n: OnnxCall) -> Any:
    x, alpha = n.symbol(), n.attr("alpha", 1.0)
    power = r.op("expm1", r.op("_div_scalar", x, scalar=alpha))
    below = r.op("_minimum_scalar", r.op("_mul_scalar", power, scalar=alpha), scalar=0.0)
    return r.op("elemwise_add", r.op("relu", x), below)


@reads("ThresholdedRelu", elementwise=True)
def read_thresholded(r: Reader, n: OnnxCall) -> Any:
    above = r.op("_greater_scalar", n.symbol(), scalar=n.attr("alpha", 1.0))
    return r.op("where", above, n.symbol(), r.op("zeros_like", n.symbol()))


@reads("HardSwish", elementwise=True)
def read_hard_swish(r: Reader, n: OnnxCall) -> Any:
    gate = r.op("hard_sigmoid", n.symbol(), alpha=1 / 6, beta=0.5)
    return r.op("elemwise_mul", n.symbol(), gate)


@reads("Mish", elementwise=True)
def read_mish(r: Reader, n: OnnxCall) -> Any:
    gate = r.op("tanh", r.op("Activation", n.symbol(), act_type="softrelu"))
    return r.op("elemwise_mul", n.symbol(), gate)


@reads("Swish", elementwise=True)
def read_swish(r: Reader, n: OnnxCall) -> Any:
    gate = r.op("sigmoid", r.op("_mul_scalar", n.symbol(), scalar=n.attr("alpha", 1.0)))
    return r.op("elemwise_mul", n.symbol(), gate)


# softmax ---------------------------------------------------------------------------------------


def _logits(w: Writer, x: Call) -> str:
    """The data of a softmax in its dtype, divided by the temperature."""
    data, dtype = x.inputs[0], x.out_dtype()
    data = data if dtype is x.dtype() else w.cast(data, dtype)
    factor = x.op.factor
    return data if factor == 1 else w.op("Mul", data, w.const(factor, dtype))


def _masked(w: Writer, x: Call, data: str, axis: int) -> tuple[str, str]:
    """Data that counts no more behind `length`, and where it counts."""
    steps = x.shape()[axis]
    if not isinstance(steps, int):
        raise Unsupported("use_length, with an axis whose size is left open")
    line = np.arange(steps).reshape([-1 if k == axis else 1 for k in range(x.rank())])
    ends = w.axes_op("Unsqueeze", w.cast(x.inputs[1], "int64"), [axis])
    mask = w.op("Less", w.const(line), ends)
    return w.op("Where", mask, data, w.const(-1e30, x.out_dtype())), mask


@writes("softmax softmin log_softmax", "Cast Mul Unsqueeze Less Where Softmax LogSoftmax")
def write_softmax(w: Writer, x: Call) -> str:
    axis, data = x.axis(x.op.axis), _logits(w, x)
    kind = "LogSoftmax" if x.op.name == "log_softmax" else "Softmax"
    if not x.op.use_length:
        return w.op(kind, data, axis=axis)
    data, mask = _masked(w, x, data, axis)
    return w.op("Where", mask, w.op(kind, data, axis=axis), w.const(0, x.out_dtype()))


@writes("SoftmaxActivation", "Softmax")
def write_softmax_activation(w: Writer, x: Call) -> str:
    return w.op("Softmax", *x.inputs, axis=1 if x.op.mode == "channel" else -1)


@writes("SoftmaxOutput", "Flatten Softmax Reshape Shape")
def write_softmax_output(w: Writer, x: Call) -> str:
    data, op = x.inputs[0], x.op
    if op.multi_output or op.preserve_shape or x.rank() <= 2:
        return w.op("Softmax", data, axis=1 if op.multi_output and not op.preserve_shape else -1)
    made = w.op("Softmax", w.op("Flatten", data), axis=1)
    return w.op("Reshape", made, w.op("Shape", data))


@writes("LinearRegressionOutput MAERegressionOutput SVMOutput", "")
def write_output(w: Writer, x: Call) -> str:
    return x.inputs[0]


@writes("LogisticRegressionOutput", "Sigmoid")
def write_logistic(w: Writer, x: Call) -> str:
    return w.op("Sigmoid", x.inputs[0])


def _read_softmax(name: str) -> Any:
    def read(r: Reader, n: OnnxCall) -> Any:
        rank = n.rank()
        if n.opset >= 13:
            return r.op(name, n.symbol(), axis=n.axis(-1))
        axis = n.axis(1)
        if axis == rank - 1:
            return r.op(name, n.symbol(), axis=axis)
        shape = n.dims()  # opset 1 to 12: all axes from this one on are one
        rows = int(np.prod(shape[:axis], dtype=np.int64))
        flat = r.op("Reshape", n.symbol(), shape=(rows, -1))
        return r.op("Reshape", r.op(name, flat, axis=1), shape=shape)

    return read


reads("Softmax")(_read_softmax("softmax"))
reads("LogSoftmax")(_read_softmax("log_softmax"))


@reads("Hardmax")
def read_hardmax(r: Reader, n: OnnxCall) -> Any:
    shape = n.dims()
    axis = n.axis(-1 if n.opset >= 13 else 1)
    x = n.symbol()
    if n.opset < 13:
        x = r.op("Reshape", x, shape=(int(np.prod(shape[:axis], dtype=np.int64)), -1))
        axis = 1
    rank, depth = r.rank(x), r.dims(x)[axis]
    found = r.op("one_hot", r.op("argmax", x, axis=axis), depth=depth)
    order = [*range(axis), rank - 1, *range(axis, rank - 1)]
    found = r.op("transpose", found, axes=tuple(order)) if axis != rank - 1 else found
    return r.op("Reshape", cast(r, found, n.dtype().name), shape=shape)


@writes("Dropout", "")
def write_dropout(w: Writer, x: Call) -> str:
    if x.op.mode == "always":
        raise Unsupported("mode = 'always'")
    return x.inputs[0]
