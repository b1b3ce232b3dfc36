"""Whether all elements are finite numbers, as training in half precision asks of gradients."""

from __future__ import annotations

import functools
import math

from gnomon.base import ParamError, complaint
from gnomon.dtype import float32
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import count, param


class Finite(Op):
    """What both operators share: one number, 1 where everything is finite and 0 where not."""

    init_output: bool = param(True, doc="Begin anew; what stands in `out` is not read.")

    def check(self) -> None:
        if not self.init_output:
            expected = "True (what stands in `out` is not read; multiply the results)"
            raise ParamError(complaint(self.name, "init_output", expected, False))

    def shapes(self, s: Shapes) -> None:
        s["output"] = (1,)

    def types(self, t: Types) -> None:
        for name in self.arguments():
            found = t[name]
            if found is not None and found.kind != "f":
                raise t.refuse(name, "floating-point numbers", found.name)
        t["output"] = float32

    def forward(self, *args: Expr) -> Expr:
        return functools.reduce(fn.minimum, map(_finite, args))

    def backward(self, out_grads: object, inputs: object, outputs: object) -> tuple[None, ...]:
        return (None,) * len(self.arguments())


def _finite(data: Expr) -> Expr:
    """1 where all of `data` is finite, of shape (1,)."""
    holds = cast(fn.lt(fn.abs(data), math.inf), float32)
    axes = tuple(range(data.ndim))
    found = ext.reduce(holds, "min", axes) if axes else holds
    return ext.reshape(fn.minimum(found, 1.0), (1,))  # of no elements the least is infinite


@op("all_finite")
class AllFinite(Finite):
    """1 where all elements are finite, else 0."""


@op("multi_all_finite", variadic="num_arrays")
class MultiAllFinite(Finite):
    """1 where all elements of all arrays are finite, else 0."""

    num_arrays: int = count(1, doc="How many arrays there are.")
    stem = "array_"
