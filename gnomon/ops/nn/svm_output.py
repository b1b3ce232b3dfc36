"""SVMOutput: scores forward, the gradient of a margin loss backward."""

from __future__ import annotations

from typing import Any

from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.infer import Shapes
from gnomon.ops.op import Op, op
from gnomon.ops.param import param


@op("SVMOutput", inputs=("data", "label"))
class SVMOutput(Op):
    """`data` itself; backward pushes the label's score above `margin` and the others below it."""

    margin: float = param(1.0, doc="How far scores should be on their side.")
    regularization_coefficient: float = param(1.0, doc="What the gradient is multiplied by.")
    use_linear: bool = param(False, doc="Take the distance to the margin, not its square.")

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        s["label"] = s.rank("data", 2)[:1]

    def forward(self, data: Expr, label: Expr) -> Expr:
        return fn.identity(data)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr, None]:
        y, label = outputs[0], ext.broadcast_axis(cast(inputs[1], int64), outputs[0].shape, 0)
        mine = cast(fn.eq(ext.iota(y.shape, 1, int64), label), y.dtype)
        side = 1 - mine * 2  # -1 at the label, 1 elsewhere
        missing = side * y + self.margin
        push = fn.gt(missing, 0) if self.use_linear else fn.maximum(missing, 0) * 2
        return side * push * self.regularization_coefficient, None
