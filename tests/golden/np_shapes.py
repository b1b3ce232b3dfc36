"""Inference within and outside of `np_shape`, asked of MXNet and of gnomon; `mx` is either."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

Shapes = dict[str, tuple[int, ...]]


def _dense(mx: Any) -> Any:
    return mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=4, name="fc")


def _held(*shape: int) -> Callable[[Any], Any]:
    return lambda mx: mx.sym.FullyConnected(mx.sym.var("z", shape=shape), num_hidden=2, name="f")


def _sum(mx: Any) -> Any:
    return mx.sym.var("x") + mx.sym.var("y")


def _joined(mx: Any) -> Any:
    return mx.sym.concat(mx.sym.var("x"), mx.sym.var("y"), dim=0)


def _loop(mx: Any) -> Any:
    step = lambda x, s: (x + s, x + s)  # noqa: E731
    made, end = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("y"))
    return mx.sym.Group([made, end])


# name: a symbol, and what is given of its arguments
CASES: dict[str, tuple[Callable[[Any], Any], Shapes]] = {
    "layer of no rows": (_dense, {"x": (0, 3)}),
    "layer of unknown rows": (_dense, {"x": (-1, 3)}),
    "scalars": (_sum, {"x": (), "y": ()}),
    "a scalar and nothing": (_sum, {"x": ()}),
    "parts of each": (_sum, {"x": (-1, 3), "y": (2, -1)}),
    "parts of each by 0": (_sum, {"x": (0, 3), "y": (2, 0)}),
    "sum": (lambda mx: mx.sym.sum(mx.sym.var("x")), {"x": (0, 3)}),
    "sum of rows": (lambda mx: mx.sym.sum(mx.sym.var("x"), axis=1), {"x": (0, 3)}),
    "sum of unknown rows": (lambda mx: mx.sym.sum(mx.sym.var("x"), axis=1), {"x": (-1, 3)}),
    "joined": (_joined, {"x": (0, 3), "y": (2, 3)}),
    "joined to unknown": (_joined, {"x": (-1, 3), "y": (2, 3)}),
    "reshaped": (lambda mx: mx.sym.reshape(mx.sym.var("x"), shape=(-1, 3)), {"x": (0, 3)}),
    "reshaped, kept": (lambda mx: mx.sym.reshape(mx.sym.var("x"), shape=(0, 3)), {"x": (0, 3)}),
    "no images": (
        lambda mx: mx.sym.Convolution(mx.sym.var("x"), kernel=(3, 3), num_filter=2, name="c"),
        {"x": (0, 3, 5, 5)},
    ),
    "attribute of 0": (_held(0, 3), {}),
    "attribute of -1": (_held(-1, 3), {}),
    "attribute of ()": (lambda mx: mx.sym.var("z", shape=()), {}),
    "zeros": (lambda mx: mx.sym.zeros(shape=(0, 3)), {}),
    "zeros and more": (lambda mx: mx.sym.zeros(shape=(0, 3)) + mx.sym.var("x"), {"x": (2, 0)}),
    "determinant": (lambda mx: mx.sym.linalg.det(mx.sym.var("A")), {"A": (2, 2)}),
    "determinants": (lambda mx: mx.sym.linalg.det(mx.sym.var("A")), {"A": (1, 2, 2)}),
    "sign and logarithm": (lambda mx: mx.sym.linalg.slogdet(mx.sym.var("A")), {"A": (2, 2)}),
    "logarithms": (lambda mx: mx.sym.linalg.sumlogdiag(mx.sym.var("A")), {"A": (2, 2)}),
    "loop": (_loop, {"x": (2, 3), "y": (3,)}),
    "loop over elements": (_loop, {"x": (3,), "y": (1,)}),
}


def inferred(mx: Any, name: str, active: bool) -> Any:
    """What `infer_shape` and `infer_shape_partial` give; None where they refuse."""
    make, given = CASES[name]
    found = []
    with mx.np_shape(active), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        symbol = make(mx)
        for ask in (symbol.infer_shape, symbol.infer_shape_partial):
            try:
                found.append(
                    [
                        part and [None if s is None else list(s) for s in part]
                        for part in ask(**given)
                    ]
                )
            except mx.MXNetError:
                found.append(None)
    return found
