"""The networks of the benchmarks as symbols, of gnomon or of MXNet: `mx` is either package."""

from __future__ import annotations

from typing import Any

import nets

WORDS = 10_000


def mlp(mx: Any, size: int) -> Any:
    x = mx.sym.Variable("data")
    for i, width in enumerate((128, 64), 1):
        x = mx.sym.FullyConnected(x, name=f"fc{i}", num_hidden=width)
        x = mx.sym.Activation(x, act_type="relu")
    return mx.sym.FullyConnected(x, name="fc3", num_hidden=nets.CLASSES)


def lenet(mx: Any, size: int) -> Any:
    x = mx.sym.Variable("data")
    for i, width in enumerate((20, 50), 1):
        x = mx.sym.Convolution(x, name=f"conv{i}", kernel=(5, 5), num_filter=width)
        x = mx.sym.Activation(x, act_type="tanh")
        x = mx.sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), name="fc1", num_hidden=500)
    x = mx.sym.Activation(x, act_type="tanh")
    return mx.sym.FullyConnected(x, name="fc2", num_hidden=nets.CLASSES)


def normalized(mx: Any, x: Any, name: str, filters: int, kernel: int, stride: int = 1) -> Any:
    sizes = {"kernel": (kernel, kernel), "stride": (stride, stride), "pad": (kernel // 2,) * 2}
    x = mx.sym.Convolution(x, name=f"{name}_conv", num_filter=filters, no_bias=True, **sizes)
    return mx.sym.BatchNorm(x, name=f"{name}_bn", fix_gamma=False, eps=nets.EPS, momentum=0.9)


def relu(mx: Any, x: Any) -> Any:
    return mx.sym.Activation(x, act_type="relu")


def resnet20(mx: Any, size: int) -> Any:
    return resnet(mx, 20)


def resnet110(mx: Any, size: int) -> Any:
    return resnet(mx, 110)


def resnet(mx: Any, depth: int) -> Any:
    """The residual network of `depth` layers for pictures of 32 by 32, version 1."""
    x = relu(mx, normalized(mx, mx.sym.Variable("data"), "stem", 16, 3))
    for name, _, filters, stride, _ in nets.blocks(depth):
        y = relu(mx, normalized(mx, x, f"{name}_a", filters, 3, stride))
        y = normalized(mx, y, f"{name}_b", filters, 3)
        x = normalized(mx, x, f"{name}_short", filters, 1, stride) if stride > 1 else x
        x = relu(mx, x + y)
    x = mx.sym.Pooling(x, pool_type="avg", global_pool=True, kernel=(8, 8))
    return mx.sym.FullyConnected(mx.sym.Flatten(x), name="fc", num_hidden=nets.CLASSES)


def resnet50(mx: Any, size: int) -> Any:
    """The residual network of 50 layers for pictures of 224 by 224, version 1.5."""
    x = relu(mx, normalized(mx, mx.sym.Variable("data"), "stem", 64, 7, 2))
    x = mx.sym.Pooling(x, pool_type="max", kernel=(3, 3), stride=(2, 2), pad=(1, 1))
    for name, inputs, filters, stride, _ in nets.bottlenecks():
        y = relu(mx, normalized(mx, x, f"{name}_a", filters, 1))
        y = relu(mx, normalized(mx, y, f"{name}_b", filters, 3, stride))
        y = normalized(mx, y, f"{name}_c", 4 * filters, 1)
        if inputs != 4 * filters:
            x = normalized(mx, x, f"{name}_short", 4 * filters, 1, stride)
        x = relu(mx, x + y)
    x = mx.sym.Pooling(x, pool_type="avg", global_pool=True, kernel=(7, 7))
    return mx.sym.FullyConnected(mx.sym.Flatten(x), name="fc", num_hidden=nets.CLASSES)


def recurrent(mx: Any, x: Any, size: int) -> Any:
    """Two layers over (steps, batch, channels), from states of 0."""
    states = {name: mx.sym.zeros(shape=(nets.RECURRENT, size, nets.HIDDEN))
              for name in ("state", "state_cell")}  # fmt: skip
    how = {"mode": "lstm", "state_size": nets.HIDDEN, "num_layers": nets.RECURRENT}
    return mx.sym.RNN(x, name="rnn", **states, **how)


def lstm(mx: Any, size: int) -> Any:
    """Two layers, whose last output is classified."""
    x = mx.sym.SwapAxis(mx.sym.Variable("data"), dim1=0, dim2=1)
    x = mx.sym.slice_axis(recurrent(mx, x, size), axis=0, begin=nets.STEPS - 1, end=nets.STEPS)
    x = mx.sym.Reshape(x, shape=(-1, nets.HIDDEN))
    return mx.sym.FullyConnected(x, name="fc", num_hidden=nets.CLASSES)


def words(mx: Any, size: int) -> Any:
    """Two layers over words, every step classified."""
    x = mx.sym.Variable("data")
    x = mx.sym.Embedding(x, name="embed", input_dim=WORDS, output_dim=nets.HIDDEN)
    x = mx.sym.Reshape(recurrent(mx, x, size), shape=(-1, nets.HIDDEN))
    return mx.sym.FullyConnected(x, name="fc", num_hidden=WORDS)
