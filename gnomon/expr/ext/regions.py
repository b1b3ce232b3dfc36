"""regions: sums of the rectangles that divide images into a grid, which may overlap by one place.

Along an axis of `n` places, region `i` of `m` begins at floor(i n / m) and ends before
ceil((i + 1) n / m). The regions that hold place `p` are those from floor(p m / n) to before
ceil((p + 1) m / n): the regions of `m` places in `n`, so the adjoint is the same with the sizes
exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import SUM, check_numbers
from gnomon.expr.term import Term


@composite
class Regions(Chainer):
    """The sum of each of `counts` regions along the last axes, whose sizes are `space`."""

    src: Expr
    counts: tuple[int, ...]
    space: tuple[int, ...]

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_numbers("regions", "src", self.src)
        front = self.src.ndim - len(self.counts)
        return (*self.src.shape[:front], *self.counts), self.src.dtype

    def at(self, i: Index) -> Term:
        front = len(i) - len(self.counts)
        rows = list(zip(i[front:], self.space, self.counts, strict=True))

        def body(k: Index) -> Term:
            inside, place = i.arena.const(True, dt.bool_), list(i[:front])
            for offset, (at, n, m) in zip(k, rows, strict=True):
                place.append(at * n // m + offset if n % m else at * (n // m) + offset)
                if n % m:
                    inside = inside & (place[-1] * m < (at + 1) * n)
            return i.guard(inside, i.elem(self.src, place), 0)

        return i.fold(SUM, list(map(_longest, self.space, self.counts)), body)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, Regions(g, self.space, self.counts)),)


def _longest(size: int, count: int) -> int:
    """The size of the largest of `count` regions of `size` places."""
    turns = count // math.gcd(size, count)  # after which sizes come again
    return max(-(-(k + 1) * size // count) - k * size // count for k in range(turns))


@explained
def regions(src: Expr, counts: tuple[int, ...]) -> Expr:
    """The sums of `counts` regions along the last axes of `src`, which together are all of it.

    >>> regions(Buffer((2, 3, 5, 7)), (3, 2)).shape
    (2, 3, 3, 2)

    Raises:
        ShapeError: `src` has fewer axes than `counts`, or one of them has size 0.
    """
    counts = checked_sizes("regions", counts)
    space = src.shape[src.ndim - len(counts) :]
    if len(counts) > src.ndim or 0 in (*counts, *space):
        expected = f"{len(counts)} last axes that are not empty"
        raise ShapeError(complaint("regions", "src", expected, f"{src!r}"))
    return Regions(src, counts, space)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield regions(Buffer((2, 3, 5, 7)), (3, 2))
    yield regions(Buffer((2, 4, 6)), (2, 2))
    yield regions(Buffer((2, 3)), (5, 4))
    yield regions(Buffer((3, 5)) * 2.0, (1,))
