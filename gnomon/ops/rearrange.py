"""Operators that exchange blocks with channels, take diagonals, and write slices."""

from __future__ import annotations

from gnomon.expr import ext, fn
from gnomon.expr.diff import vjp
from gnomon.expr.node import Expr
from gnomon.ops.create import full
from gnomon.ops.infer import UNKNOWN, Shapes, show_shape
from gnomon.ops.movement import Sliced
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.unary import like


class Blocks(Op):
    """What both directions share."""

    block_size: int = param(low=1, doc="Sides of a block.")

    def scaled(self, s: Shapes, size: int, up: bool, by: int) -> int:
        """`size` times or divided by `by`; ShapeError where that leaves a rest."""
        if size == UNKNOWN:
            return UNKNOWN
        if not up and size % by:
            expected = f"sizes that blocks of {self.block_size} divide"
            raise s.refuse("data", expected, f"shape {show_shape(s['data'])}")
        return size * by if up else size // by


@op("depth_to_space")
class DepthToSpace(Blocks):
    """Channels laid out as blocks of an image."""

    def shapes(self, s: Shapes) -> None:
        n, c, h, w = s.rank("data", 4)
        b = self.block_size
        space = (self.scaled(s, d, True, b) for d in (h, w))
        s["output"] = (n, self.scaled(s, c, False, b * b), *space)

    def forward(self, data: Expr) -> Expr:
        return in_blocks(data, self.block_size)

    def gradient(self, grad: Expr) -> Expr:
        return in_channels(grad, self.block_size)


@op("space_to_depth")
class SpaceToDepth(Blocks):
    """Blocks of an image as channels."""

    def shapes(self, s: Shapes) -> None:
        n, c, h, w = s.rank("data", 4)
        b = self.block_size
        space = [self.scaled(s, d, False, b) for d in (h, w)]
        s["output"] = (n, self.scaled(s, c, True, b * b), *space)

    def forward(self, data: Expr) -> Expr:
        return in_channels(data, self.block_size)

    def gradient(self, grad: Expr) -> Expr:
        return in_blocks(grad, self.block_size)


def in_blocks(x: Expr, b: int) -> Expr:
    """Channels as blocks of b by b pixels, whose columns are dealt out by turns.

    Each is read along its rows: of a transposition of so few columns every element would be read
    by itself.
    """
    (n, channels, h, w) = x.shape
    k = channels // (b * b)
    columns = ext.transpose(ext.reshape(x, (n, b, b, k, h, w)), (2, 0, 3, 4, 1, 5))
    dealt = [ext.reshape(ext.slice_(columns, (j,), (j + 1,)), (n, k, h, b, w, 1)) for j in range(b)]
    return ext.reshape(ext.concat(dealt, 5) if b > 1 else dealt[0], (n, k, h * b, w * b))


def in_channels(x: Expr, b: int) -> Expr:
    """Blocks of b by b pixels as channels: the inverse of `in_blocks`."""
    n, c, h, w = x.shape
    apart = ext.reshape(x, (n, c, h // b, b, w // b, b))
    return ext.reshape(ext.transpose(apart, (0, 3, 5, 1, 2, 4)), (n, c * b * b, h // b, w // b))


def embedded(part: Expr, where: Sliced, whole: Expr) -> tuple[Expr, Expr]:
    """`part` at the slice of a `whole` of zeros, and 1 there: what a slice's adjoint gives."""
    cut = where.part(whole)
    ones = full(part.shape, 1, part.dtype)
    (values,), (marks,) = (vjp([cut], [g], [whole]) for g in (part, ones))
    assert values is not None
    assert marks is not None
    return values, marks


@op("_slice_assign", inputs=("lhs", "rhs"), aliases=("_crop_assign",))
class SliceAssign(Sliced):
    """`lhs` with the slice exchanged for `rhs`."""

    def shapes(self, s: Shapes) -> None:
        s.same("lhs", "output")
        s["rhs"] = self.cut(s, "lhs")

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        values, marks = embedded(rhs, self, full(lhs.shape, 0, lhs.dtype))
        return fn.where(marks, values, lhs)


@op("_slice_assign_scalar", aliases=("_crop_assign_scalar",))
class SliceAssignScalar(Sliced):
    """`data` with the slice exchanged for a number."""

    leading = ("scalar",)
    scalar: float = param(0.0, doc="The number.")

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        self.cut(s, "data")

    def forward(self, data: Expr) -> Expr:
        whole = full(data.shape, 0, data.dtype)
        _, marks = embedded(self.part(whole), self, whole)
        return fn.where(marks, like(self.scalar, data), data)
