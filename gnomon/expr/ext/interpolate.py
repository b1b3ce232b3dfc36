"""interpolate: an axis of another size, each element between two neighbours of the source.

Place `i` of the result lies at `(i step + begin) / unit` of the source, in whole numbers, so that
nothing is rounded; beyond the ends it lies on them. An element reads its two neighbours alone, and
the adjoint those of the result that lie less than one place away: what is not finite stays there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis, whole
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import SUM
from gnomon.expr.term import Term
from gnomon.ground.record import record


@record()
class Places:
    """Where `count` places of a result lie among `size` of the source."""

    size: int
    count: int
    step: int
    begin: int
    unit: int

    def of(self, i: int) -> int:
        """Where place `i` lies, in parts of a `unit`."""
        return min(max(i * self.step + self.begin, 0), (self.size - 1) * self.unit)

    def narrow(self, at: Term) -> Term:
        """An index as a number of half the width, where that does: they are divided far sooner."""
        far = (self.count + self.size + 2) * max(self.step, self.unit)
        return at.arena.cast(at, dt.int32 if far < dt.int32.limits[1] else dt.int64)

    def term(self, at: Term) -> Term:
        """The same of a Term."""
        raw = at * self.step + self.begin
        last = at.like((self.size - 1) * self.unit)
        arena = at.arena
        return arena.op("min", arena.op("max", raw, at.like(0)), last)

    def most(self) -> int:
        """How many places of the result, which follow each other, take of one at most."""
        takers = [0] * self.size
        for i in range(self.count):
            low, rest = divmod(self.of(i), self.unit)
            takers[low] += 1
            if rest:
                takers[low + 1] += 1
        return max(takers)


def _places(size: int, count: int, corners: bool) -> Places:
    """Those with outermost places on outermost ones, or as the middles of equal parts."""
    if corners or count < 2:  # a single one is the first
        return Places(size, count, size - 1 if count > 1 else 0, 0, max(count - 1, 1))
    return Places(size, count, 2 * size, size - count, 2 * count)


@composite
class Interpolate(Chainer):
    """`src` with other places along `axis`, linear between its own."""

    src: Expr
    axis: int
    places: Places

    def infer(self) -> tuple[tuple[int, ...], DType]:
        shape = self.src.shape
        return (*shape[: self.axis], self.places.count, *shape[self.axis + 1 :]), self.src.dtype

    def at(self, i: Index) -> Term:
        p, arena = self.places, i.arena
        place = p.term(p.narrow(i[self.axis]))
        low = place // p.unit
        high = arena.op("min", low + 1, low.like(p.size - 1))
        rows = (i.put(self.axis, arena.cast(at, dt.int64)) for at in (low, high))
        a, b = (i.elem(self.src, row) for row in rows)
        share = arena.cast(place - low * p.unit, a.dtype) / p.unit
        return a * (1.0 - share) + b * share

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, InterpolateGrad(g, self.axis, self.places)),)


@composite
class InterpolateGrad(Chainer):
    """What `Interpolate` sends back: each place gets its share of those near it."""

    grad: Expr
    axis: int
    places: Places
    rereads: ClassVar[bool] = True  # each sum of a row once, beside those of columns

    def infer(self) -> tuple[tuple[int, ...], DType]:
        shape = self.grad.shape
        return (*shape[: self.axis], self.places.size, *shape[self.axis + 1 :]), self.grad.dtype

    def at(self, i: Index) -> Term:
        p, arena = self.places, i.arena
        here = p.narrow(i[self.axis])
        start = self.first(here)

        def body(k: Index) -> Term:
            at = start + arena.cast(k[0], start.dtype)
            away = p.term(at) - here * p.unit
            share = away.like(p.unit) - arena.op("max", away, -away)
            inside = (share > 0) & (at < p.count)
            value = i.elem(self.grad, i.put(self.axis, arena.cast(at, dt.int64)))
            return i.guard(inside, value * (arena.cast(share, value.dtype) / p.unit), 0)

        return i.fold(SUM, [p.most()], body)

    def first(self, here: Term) -> Term:
        """The first place of the result that takes of this one."""
        p, arena = self.places, here.arena
        if not p.step:
            return here.like(0)
        after = (here - 1) * p.unit - p.begin + p.step  # not negative but for place 0
        return arena.select(here.eq(0), here.like(0), after // p.step)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.grad, Interpolate(g, self.axis, self.places)),)


@explained
def interpolate(src: Expr, axis: int, count: int, corners: bool = True) -> Expr:
    """`src` with `count` places along `axis`, linear between its own.

    With `corners` the outermost places lie on the outermost ones, else places are the middles of
    equal parts.

    >>> interpolate(Buffer((2, 3, 4)), 1, 5).shape
    (2, 5, 4)

    Raises:
        ShapeError: there is no such axis, or it is empty.
        DTypeError: `src` holds no floats.
    """
    axis = normal_axis("interpolate", axis, src.ndim)
    if not src.shape[axis]:
        raise ShapeError(complaint("interpolate", "src", f"places along axis {axis}", f"{src!r}"))
    if src.dtype.kind != "f":
        raise DTypeError(complaint("interpolate", "src", "floats: cast it first", f"{src!r}"))
    count = whole("interpolate", "count", count, 0)
    return Interpolate(src, axis, _places(src.shape[axis], count, bool(corners)))


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    for corners in (True, False):
        yield interpolate(Buffer((2, 5, 3)), 1, 7, corners)
        yield interpolate(Buffer((3, 9)) * 2.0, -1, 4, corners)
        yield interpolate(Buffer((4,), dt.float64), 0, 1, corners)
        yield interpolate(Buffer((1, 2)), 0, 3, corners)
