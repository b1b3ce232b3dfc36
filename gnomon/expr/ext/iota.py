"""iota: every element is its own position along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes, normal_axis
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Expr
from gnomon.expr.term import Term, compute_dtype


@composite
class Iota(Chainer):
    """The index along `axis`, in the dtype `of`."""

    to: Sizes
    axis: int
    of: DType

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.to, self.of

    def at(self, i: Index) -> Term:
        return i.arena.cast(i[self.axis], compute_dtype(self.of))


@explained
def iota(shape: Sequence[int], axis: int = 0, dtype: DType = dt.int64) -> Expr:
    """0, 1, 2, ... along `axis` of `shape`.

    >>> iota((2, 3), 1).shape
    (2, 3)

    Raises:
        ShapeError: there is no such axis.
    """
    sizes = checked_sizes("iota", shape)
    return Iota(sizes, normal_axis("iota", axis, len(sizes)), dt.of(dtype))


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield iota((2, 3), 1)
    yield iota((4,), 0, dt.float32)
