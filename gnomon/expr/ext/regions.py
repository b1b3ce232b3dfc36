"""regions: sums of the parts that divide an axis, which may overlap by one place.

Of `n` places, region `i` of `m` begins at floor(i n / m) and ends before ceil((i + 1) n / m). The
regions that hold place `p` are those from floor(p m / n) to before ceil((p + 1) m / n): the regions
of `m` places in `n`, so the adjoint is the same with the sizes exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis, whole
from gnomon.expr.composite import Chainer, Size, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.quotient import Kinds, kinds_below, number, quotient
from gnomon.expr.reducer import SUM, check_numbers
from gnomon.expr.term import Term


@composite
class Regions(Chainer):
    """The sum of each of `count` regions along `axis`, whose size is `size`.

    They hold `most` places at most; all hold as many where they are `even`.
    """

    src: Expr
    axis: int
    count: Size
    size: Size
    most: Size
    even: bool
    kinds: Kinds
    rereads: ClassVar[bool] = True  # regions of regions: each sum once, beside one axis

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_numbers("regions", "src", self.src)
        shape = self.src.shape
        return (*shape[: self.axis], self.count, *shape[self.axis + 1 :]), self.src.dtype

    def at(self, i: Index) -> Term:
        if self.even:
            begin = i[self.axis] * self.most
            return i.fold(SUM, [self.most], lambda k: self.there(i, begin + k[0]))
        at = i.arena.cast(i[self.axis], self.kinds.whole)
        n, m = number(self.size, at), number(self.count, at)
        begin = quotient(at * n, m, self.kinds)
        end = quotient((at + 1) * n + (m - 1), m, self.kinds)

        def body(k: Index) -> Term:
            place = begin + i.arena.cast(k[0], begin.dtype)
            return i.guard(place < end, self.there(i, i.arena.cast(place, dt.int64)), 0)

        return i.fold(SUM, [self.most], body)

    def there(self, i: Index, place: Term) -> Term:
        """The element of the source at `place` along the axis."""
        return i.elem(self.src, i.put(self.axis, place))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, _regions(g, self.axis, self.size, self.count)),)


def _regions(src: Expr, axis: int, count: int, size: int) -> Regions:
    turns = count // math.gcd(size, count)  # after which sizes come again
    most = max(-(-(k + 1) * size // count) - k * size // count for k in range(turns))
    kinds = kinds_below((count + 1) * (size + 1))
    return Regions(src, axis, count, size, most, size % count == 0, kinds)


@explained
def regions(src: Expr, axis: int, count: int) -> Expr:
    """The sums of `count` regions along `axis` of `src`, which together are all of it.

    >>> regions(Buffer((3, 5, 7)), 1, 2).shape
    (3, 2, 7)

    Raises:
        ShapeError: there is no such axis, it is empty, or `count` is 0.
    """
    axis = normal_axis("regions", axis, src.ndim)
    if not src.shape[axis]:
        raise ShapeError(complaint("regions", "src", f"places along axis {axis}", f"{src!r}"))
    return _regions(src, axis, whole("regions", "count", count, 1), src.shape[axis])


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield regions(Buffer((2, 5, 3)), 1, 3)
    yield regions(Buffer((2, 6)), 1, 2)
    yield regions(Buffer((3, 2)), 0, 5)
    yield regions(Buffer((3, 5)) * 2.0, -1, 1)
