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
    from `sparseness_target`, times `penalty`. The moving mean moves in each backward pass.
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

    def forward(self, data: Expr, moving_avg: Expr) -> tuple[Expr, Expr]:
        axes = tuple(a for a in range(data.ndim) if a != 1)
        return fn.identity(data), ext.reshape(mean_over(data, axes), moving_avg.shape)

    def updates_backward(
        self, inputs: Any, aux: Any, outputs: Any, train: bool = True
    ) -> dict[int, Expr]:
        return {0: self.moved(aux[0], outputs[1])}

    def moved(self, moving_avg: Expr, mean: Expr) -> Expr:
        """The moving mean with that of one more batch."""
        return moving_avg * self.momentum + mean * (1 - self.momentum)

    def gradient(self, grad: Expr, moving_avg: Expr, mean: Expr) -> Expr:
        target, mean = self.sparseness_target, self.moved(moving_avg, mean)
        slope = (1 - target) / (1.0 - mean) - target / mean
        return grad + ext.broadcast_axis(slope, grad.shape, 1) * self.penalty

    def reference(self, data: Any, moving_avg: Any) -> Any:
        return data
