"""MakeLoss: any expression as a loss."""

from __future__ import annotations

from typing import Any

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.create import full
from gnomon.ops.infer import Free, Shape
from gnomon.ops.nn.softmax_output import NORMALIZATIONS
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.reduce import total


@op("MakeLoss")
class MakeLoss(Op):
    """`data` itself; its gradient is `grad_scale`, whatever comes from above."""

    grad_scale: float = param(1.0, doc="The gradient.")
    valid_thresh: float = param(0.0, doc="What counts as valid lies above.")
    normalization: str = param(
        "null", choices=NORMALIZATIONS, doc="What the gradient is divided by."
    )

    def free(self, data: Shape) -> Free:
        return Free(data, data[:1] if self.normalization == "batch" else ())

    def forward(self, data: Expr) -> Expr:
        return fn.identity(data)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr]:
        data = inputs[0]
        if self.normalization == "valid":
            counted = total(fn.gt(data, self.valid_thresh), tuple(range(data.ndim)))
            return (ext.broadcast_to(self.grad_scale / fn.maximum(counted, 1), data.shape),)
        share = data.shape[0] if self.normalization == "batch" and data.ndim > 1 else 1
        return (full(data.shape, self.grad_scale / max(share, 1), data.dtype),)
