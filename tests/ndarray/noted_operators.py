"""Operators of random training loops (`noted.py`), of two arrays; results are small again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon import autograd, nd

N = 4  # rows and columns of all arrays
State = Any  # a run of a loop, `noted.State`


def small(x: Any) -> Any:
    return nd.clip(x, -3, 3)


def halves(state: State, a: Any, b: Any) -> Any:
    first, second = nd.split(a, num_outputs=2, axis=1)
    return nd.concat(second, first + 1, dim=1)


def rows(state: State, a: Any, b: Any) -> Any:
    return nd.concat(a[1:], b[:1], dim=0)


def picked(state: State, a: Any, b: Any) -> Any:
    return nd.take(a, nd.array([3, 0, 0, 1]))


def normed(state: State, a: Any, b: Any) -> Any:
    """A BatchNorm, which changes averages: each of two in turn."""
    mean, variance = state.moving[state.normed % 2]
    state.normed += 1
    settings = {"fix_gamma": False, "momentum": 0.5, "axis": -1}
    return nd.BatchNorm(a, state.bias, state.bias, mean, variance, **settings) * 0 + b


class Halved(autograd.Function):
    """The second array, with a gradient of its own for both."""

    def forward(self, a: Any, b: Any) -> Any:
        self.save_for_backward(a)
        return b * 1

    def backward(self, dy: Any) -> Any:
        (a,) = self.saved_tensors
        return dy * (a > 0), dy


STEADY: list[Callable[[State, Any, Any], Any]] = [
    lambda state, a, b: small(a + b),
    lambda state, a, b: small(a * b),
    lambda state, a, b: nd.relu(a),
    lambda state, a, b: small(a - 2 * b),
    lambda state, a, b: small(nd.FullyConnected(a, b, state.bias, num_hidden=N)),
    lambda state, a, b: small(nd.dot(a, b)),
    lambda state, a, b: a.reshape((2, 2 * N)).reshape((N, N)),
    lambda state, a, b: nd.transpose(a) + b * 0,
    lambda state, a, b: small(nd.broadcast_add(a, nd.sum(b, axis=1, keepdims=True))),
    lambda state, a, b: nd.maximum(a, b),
    lambda state, a, b: nd.where(a > 0, a, b),
    lambda state, a, b: small(nd.batch_dot(a.reshape((2, 2, N)), b.reshape((2, N, 2))).sum() + a),
    lambda state, a, b: small(nd.FullyConnected(a, b, None, no_bias=True, num_hidden=N)),
    normed,
    normed,
    lambda state, a, b: nd.BlockGrad(a) + b,
    lambda state, a, b: small(nd.LayerNorm(a, state.bias, state.bias) * 0 + b),
    lambda state, a, b: nd.topk(a, k=N, axis=0, ret_typ="value") + b * 0,
    lambda state, a, b: small(a.astype("float64") + b.astype("float64")).astype("float32"),
    lambda state, a, b: a.astype("int32").astype("float32") + b * 0,
    lambda state, a, b: Halved()(a, b),
    lambda state, a, b: small(a * state.number),
    lambda state, a, b: small(state.number - a),
    lambda state, a, b: nd.maximum(small(b + state.number), -1),
    lambda state, a, b: nd.clip(a, -1 - abs(state.number), 2) + 0 * b,
    lambda state, a, b: small(nd.LeakyReLU(a, slope=state.number)),
    halves,
    rows,
    picked,
]  # fmt: skip

RANDOM: list[Callable[[State, Any, Any], Any]] = [
    lambda state, a, b: small(nd.Dropout(a, p=0.5)),
    lambda state, a, b: small(nd.Dropout(a + b, p=0.75, axes=(0,))),
    lambda state, a, b: small(nd.Dropout(a + b, p=abs(state.number) % 5 / 4)),
]
OPERATORS = [*STEADY, *RANDOM]
