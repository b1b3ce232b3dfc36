"""flip: a tensor mirrored along axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axes
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.term import Term
from gnomon.expr.view import view_of


@composite
class Flip(Chainer):
    """`src` mirrored along `axes`; its own inverse, so its own adjoint."""

    src: Expr
    axes: tuple[int, ...]

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.src.shape, self.src.dtype

    def at(self, i: Index) -> Term:
        pairs = enumerate(zip(i, self.shape, strict=True))
        return i.elem(self.src, [-x + (n - 1) if a in self.axes else x for a, (x, n) in pairs])

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, Flip(g, self.axes)),)

    def view(self, src: Buffer) -> Buffer | None:
        strides = [-s if a in self.axes else s for a, s in enumerate(src.strides)]
        last = sum((src.shape[a] - 1) * src.strides[a] for a in self.axes)
        return view_of(src, self.shape, strides, 0 if 0 in self.shape else last)


@explained
def flip(src: Expr, axis: int | Iterable[int]) -> Expr:
    """`src` mirrored along one axis or several.

    >>> flip(Buffer((2, 3)), -1).shape
    (2, 3)

    Raises:
        ShapeError: there is no such axis, or one is named twice.
    """
    axes = normal_axes("flip", axis, src.ndim)
    return Flip(src, axes) if axes else src


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield flip(Buffer((3, 4)), 0)
    yield flip(Buffer((2, 3, 4)) * 2.0, (0, -1))
    yield flip(Buffer((0, 2)), 0)
