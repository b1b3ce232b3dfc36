"""IdentityAttachKLSparseReg: activations held to a share of being on."""

from __future__ import annotations

from typing import Any

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.case import case
from gnomon.ops.infer import Shapes
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.reduce import mean as mean_over


@op(
    "IdentityAttachKLSparseReg",
    inputs=("data", "moving_avg"),
    aux=("moving_avg",),
    outputs=("output", "mean"),
)
class IdentityAttachKLSparseReg(Op):
    """`data` itself; its gradient pulls the mean of each column, over time, to a target.

    What is added is the derivative of the Kullback-Leibler divergence of a column's moving mean
    from `sparseness_target`, times `penalty`.
    """

    sparseness_target: float = param(0.1, low=0, high=1, doc="The mean that is aimed at.")
    penalty: float = param(0.001, doc="Factor of what is added to the gradient.")
    momentum: float = param(0.9, low=0, high=1, doc="How much of the moving mean stays.")

    num_visible_outputs = 1
    cases = (case((4, 3), (3,), low=0.2, high=0.8, differentiable=()),)

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        if len(data) < 2:
            raise s.refuse("data", "rows of activations", f"shape {data}")
        s["moving_avg"] = s["mean"] = (data[1],)

    def forward(self, data: Expr, moving_avg: Expr, *, train: bool = False) -> tuple[Expr, Expr]:
        if not train:
            return fn.identity(data), fn.identity(moving_avg)
        axes = tuple(a for a in range(data.ndim) if a != 1)
        now = ext.reshape(mean_over(data, axes), moving_avg.shape)
        return fn.identity(data), moving_avg * self.momentum + now * (1 - self.momentum)

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool = True) -> dict[int, Expr]:
        return {0: outputs[1]} if train else {}

    def gradient(self, grad: Expr, mean: Expr) -> Expr:
        target = self.sparseness_target
        slope = (1 - target) / (1.0 - mean) - target / mean
        return grad + ext.broadcast_axis(slope, grad.shape, 1) * self.penalty

    def reference(self, data: Any, moving_avg: Any) -> Any:
        return data
