"""Calls as editors and type checkers see them: `mypy` reads this file with the package.

A line marked `type: ignore` is a mistake that must be seen: mypy reports marks without one.
"""

from __future__ import annotations

import gnomon as mx


def arrays(x: mx.nd.NDArray) -> mx.nd.NDArray:
    """Functions of arrays, right and wrong."""
    y = mx.nd.Activation(x, act_type="relu") + mx.nd.sum(x, axis=(0, 1), keepdims=True)
    y = mx.nd.contrib.box_iou(y, mx.nd.concat(x, y, dim=0))
    mx.nd.Activation(x, act_type="rely")  # type: ignore[arg-type]
    mx.nd.Activation(x)  # type: ignore[call-arg]
    mx.nd.sum(x, axes=0)  # type: ignore[call-arg]
    mx.nd.sun(x)  # type: ignore[attr-defined]
    return mx.nd.linalg.gemm2(y, y, transpose_b=True)


def symbols() -> mx.sym.Symbol:
    """The same of symbols."""
    data = mx.sym.Variable("data")
    hidden = mx.sym.FullyConnected(data, num_hidden=10, name="fc1")
    mx.sym.FullyConnected(data, num_hidden="ten")  # type: ignore[arg-type]
    return mx.sym.SoftmaxOutput(hidden, name="softmax")
