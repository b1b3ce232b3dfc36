"""upsampling_nearest: every element of an image as a square of equal ones."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.ext.pool import pool
from gnomon.expr.ext.slice_ import slice_
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.term import Term


@composite
class Upsampling(Chainer):
    """Element (y, x) of the last two axes is (y // scale, x // scale) of `src`."""

    src: Expr
    scale: int

    def infer(self) -> tuple[tuple[int, ...], DType]:
        if self.src.ndim < 2:
            expected = "two axes or more"
            raise ShapeError(complaint("upsampling_nearest", "src", expected, f"{self.src!r}"))
        *front, h, w = self.src.shape
        return (*front, h * self.scale, w * self.scale), self.src.dtype

    def at(self, i: Index) -> Term:
        *front, y, x = i
        return i.elem(self.src, (*front, y // self.scale, x // self.scale))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        if 0 in g.shape[-2:]:  # no square to sum: what is left has no elements either
            return ((self.src, slice_(g, [0] * g.ndim, self.src.shape)),)
        square = (self.scale, self.scale)
        return ((self.src, pool(g, "sum", square, square)),)


@explained
def upsampling_nearest(src: Expr, scale: int) -> Expr:
    """`src` with its last two axes `scale` times as long, each element repeated.

    >>> upsampling_nearest(Buffer((2, 3, 4)), 2).shape
    (2, 6, 8)

    Raises:
        ShapeError: `src` is no image, or `scale` is below 1.
    """
    return Upsampling(src, whole("upsampling_nearest", "scale", scale, 1))


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield upsampling_nearest(Buffer((2, 3, 4)), 2)
    yield upsampling_nearest(Buffer((3, 2)) * 2.0, 3)
    yield upsampling_nearest(Buffer((0, 2)), 3)
