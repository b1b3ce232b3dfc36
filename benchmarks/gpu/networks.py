"""The networks whose steps are timed on GPUs: by name, a symbol and the shape of one picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gnomon as mx

Made = tuple[Any, tuple[int, ...]]


def _mlp() -> Made:
    net = mx.sym.Variable("data")
    for width in (128, 64):
        net = mx.sym.Activation(mx.sym.FullyConnected(net, num_hidden=width), act_type="relu")
    return _classifier(net), (784,)


def _lenet() -> Made:
    net = mx.sym.Variable("data")
    for filters in (6, 16):
        net = mx.sym.Convolution(net, num_filter=filters, kernel=(5, 5))
        net = mx.sym.Activation(net, act_type="tanh")
        net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=120)
    return _classifier(mx.sym.Activation(net, act_type="tanh")), (1, 28, 28)


def _residual() -> Made:
    """Blocks as ResNet-50 has them, in float16."""
    net = mx.sym.Cast(mx.sym.Variable("data"), dtype="float16")
    net = _normalized(net, 256, 3, 2)
    for _ in range(3):
        inner = net
        for filters, size in ((64, 1), (64, 3)):
            inner = _normalized(inner, filters, size)
        inner = mx.sym.Convolution(inner, num_filter=256, kernel=(1, 1), no_bias=True)
        net = mx.sym.Activation(mx.sym.BatchNorm(inner) + net, act_type="relu")
    net = mx.sym.Pooling(net, kernel=(1, 1), global_pool=True, pool_type="avg")
    return _classifier(mx.sym.Cast(mx.sym.Flatten(net), dtype="float32")), (3, 32, 32)


def _normalized(net: Any, filters: int, size: int, stride: int = 1) -> Any:
    where = {"kernel": (size, size), "stride": (stride, stride), "pad": (size // 2, size // 2)}
    net = mx.sym.Convolution(net, num_filter=filters, no_bias=True, **where)
    return mx.sym.Activation(mx.sym.BatchNorm(net), act_type="relu")


def _classifier(net: Any) -> Any:
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=10), name="softmax")


NETWORKS: dict[str, Callable[[], Made]] = {"mlp": _mlp, "lenet": _lenet, "residual": _residual}
