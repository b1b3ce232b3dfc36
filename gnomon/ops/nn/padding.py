"""Pad: data with something around it."""

from __future__ import annotations

from gnomon.expr import ext
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Shapes
from gnomon.ops.movement import along
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param


@op("Pad", aliases=("pad",))
class Pad(Op):
    """`data` with a constant, its edge, or its mirror image around it."""

    mode: str = param(choices=("constant", "edge", "reflect"), doc="What stands around it.")
    pad_width: Dims = param(low=0, doc="Before and after each axis in turn.")
    constant_value: float = param(0.0, doc="The constant.")

    def check(self) -> None:
        if len(self.pad_width) % 2:
            raise self.wrong("pad_width", "two numbers for each axis")

    @property
    def widths(self) -> list[tuple[int, int]]:
        """How much stands before and after each axis."""
        return list(zip(self.pad_width[::2], self.pad_width[1::2], strict=True))

    def shapes(self, s: Shapes) -> None:
        data = s.rank("data", len(self.widths))
        for d, (a, b) in zip(data, self.widths, strict=True):
            if self.mode != "constant" and UNKNOWN != d <= max(a, b) - (self.mode == "edge") * max(
                a, b
            ):
                raise s.refuse("data", f"sizes above pad_width, {self.pad_width}", f"shape {data}")
        rows = zip(data, self.widths, strict=True)
        s["output"] = tuple(d + a + b for d, (a, b) in rows)

    def forward(self, data: Expr) -> Expr:
        if self.mode == "constant":
            before, after = zip(*self.widths, strict=True)
            return ext.pad(data, before, after, self.constant_value)
        for axis, (a, b) in enumerate(self.widths):
            if a or b:
                data = self.around(data, axis, a, b)
        return data

    def around(self, data: Expr, axis: int, a: int, b: int) -> Expr:
        """`data` with `a` elements before and `b` after it along `axis`."""
        n = data.shape[axis]
        if self.mode == "reflect":
            before = ext.flip(along(data, axis, 1, a + 1), axis)
            after = ext.flip(along(data, axis, n - 1 - b, n - 1), axis)
        else:
            before = stretched(along(data, axis, 0, 1), axis, a)
            after = stretched(along(data, axis, n - 1, n), axis, b)
        return ext.concat([x for x in (before, data, after) if x.shape[axis]], axis)


def stretched(edge: Expr, axis: int, size: int) -> Expr:
    """`edge`, of size 1 along `axis`, repeated to `size`."""
    return ext.broadcast_to(edge, tuple(size if a == axis else d for a, d in enumerate(edge.shape)))
