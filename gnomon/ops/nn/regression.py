"""Regression outputs: a function forward, the gradient of its loss backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.infer import Shapes, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import param


class RegressionOutput(Op):
    """What the three share: label's shape, and a gradient divided by the outputs of a sample."""

    grad_scale: float = param(1.0, doc="What the gradient is multiplied by.")

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        label = s["label"]
        if label is None:
            s["label"] = data[:1] if data[1:] == (1,) else data
        elif -1 not in (times(label), times(data)) and times(label) != times(data):
            raise s.refuse("label", f"as many elements as data, shape {data}", f"shape {label}")

    def forward(self, data: Expr, label: Expr) -> Expr:
        return self.value(data)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr, None]:
        y = outputs[0]
        away = self.slope(y, ext.reshape(inputs[1], y.shape))
        scale = self.grad_scale / max(times(y.shape[1:]), 1)
        return (away * scale if scale != 1 else away), None

    def value(self, data: Expr) -> Expr:
        """Hook: the output."""
        return fn.identity(data)

    def slope(self, y: Expr, label: Expr) -> Expr:
        """Hook: the gradient of the loss, not scaled."""
        return y - label


def regression(name: str, doc: str, value: Any, slope: Callable[[Expr, Expr], Expr]) -> None:
    """Declare the output operator of a function and its loss."""
    parts = {"__doc__": doc, "value": staticmethod(value), "slope": staticmethod(slope)}
    cls = type(name, (RegressionOutput,), parts)
    op(name, inputs=("data", "label"), aliases=(f"_sparse_{name}",))(cls)


def _side(y: Expr, label: Expr) -> Expr:
    """1 above the label, -1 elsewhere."""
    return fn.gt(y, label) * 2 - 1


regression(
    "LinearRegressionOutput",
    "`data` itself; backward gives the gradient of half the squared distance to `label`.",
    fn.identity,
    lambda y, label: y - label,
)
regression(
    "LogisticRegressionOutput",
    "The sigmoid of `data`; backward gives the gradient of its cross entropy with `label`.",
    fn.sigmoid,
    lambda y, label: y - label,
)
regression(
    "MAERegressionOutput",
    "`data` itself; backward gives the gradient of the distance to `label`.",
    fn.identity,
    _side,
)
