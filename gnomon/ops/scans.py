"""Operators along an axis that keep all partial results."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.dtype import DType
from gnomon.expr import ext
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import Axis, param

NUMBERS = ("float16", "float32", "float64", "int32", "int64", "int8")


@op("_np_cumsum", inputs=("a",), aliases=("cumsum",))
class CumSum(Op):
    """The sum of all elements up to each one along an axis."""

    axis: Axis | None = param(None, doc="The axis; all elements in a row where None.")
    dtype: DType | None = param(None, choices=NUMBERS, doc="Dtype of the output; None: of `a`.")
    cases = (case((2, 3)), case([[2, 0, 3], [0, 0, 1.5]], axis=-1), case((0, 3), axis=0))

    def shapes(self, s: Shapes) -> None:
        s["output"] = s.along("a", self.axis)

    def types(self, t: Types) -> None:
        t["output"] = self.dtype or t["a"]

    def forward(self, a: Expr) -> Expr:
        return ext.cumsum(cast(a, self.dtype or a.dtype), self.axis)

    def reference(self, a: Any) -> Any:
        return np.cumsum(a, self.axis)


@op("cumprod", inputs=("a",))
class CumProd(CumSum):
    """The product of all elements up to each one along an axis."""

    def forward(self, a: Expr) -> Expr:
        return ext.cumprod(cast(a, self.dtype or a.dtype), self.axis)

    def reference(self, a: Any) -> Any:
        return np.cumprod(a, self.axis)


@op("logcumsumexp", inputs=("a",))
class LogCumSumExp(CumSum):
    """The logarithm of the sum of `exp` of all elements up to each one along an axis."""

    def types(self, t: Types) -> None:
        super().types(t)
        t.check("output", "f")

    def forward(self, a: Expr) -> Expr:
        return ext.logcumsumexp(cast(a, self.dtype or a.dtype), self.axis)

    def reference(self, a: Any) -> Any:
        flat = a.reshape(-1) if self.axis is None else a
        return np.logaddexp.accumulate(flat, self.axis or 0)
