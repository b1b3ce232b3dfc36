"""interpolate: an axis of another size, each element between two neighbours of the source.

Place `i` of the result lies at `(i step + begin) / unit` of the source, in whole numbers, so that
nothing is rounded; beyond the ends it lies on them. An element reads its two neighbours alone, and
the adjoint those of the result that lie less than one place away: what is not finite stays there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis, whole
from gnomon.expr.composite import Chainer, Size, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.quotient import Kinds, kinds_below, number, quotient
from gnomon.expr.reducer import SUM
from gnomon.expr.term import Term
from gnomon.ground.record import record


@record()
class Places:
    """Where `count` places of a result lie among `size` of the source; in a kernel they are Terms.

    With `corners` outermost places lie on outermost ones, else they are the middles of equal parts.
    """

    size: Any
    count: Any
    corners: bool
    kinds: Kinds

    @property
    def parts(self) -> tuple[Any, Any, Any]:
        """`step`, `begin` and `unit`."""
        if self.count in (0, 1):  # a single one is the first
            return 0, 0, 1
        if self.corners:
            return self.size - 1, 0, self.count - 1
        return self.size * 2, self.size - self.count, self.count * 2

    def of(self, i: int) -> int:
        """Where place `i` lies, in parts of a `unit`."""
        step, begin, unit = self.parts
        found: int = min(max(i * step + begin, 0), (self.size - 1) * unit)
        return found

    def index(self, at: Term) -> Term:
        """An index as the whole number that says places."""
        return at.arena.cast(at, self.kinds.whole)

    def term(self, at: Term) -> Term:
        """The same as `of`, of a Term."""
        step, begin, unit = (number(n, at) for n in self.parts)
        last = (number(self.size, at) - 1) * unit
        arena = at.arena
        return arena.op("min", arena.op("max", at * step + begin, at.like(0)), last)

    def most(self) -> int:
        """How many places of the result, which follow each other, take of one at most."""
        takers = [0] * self.size
        for i in range(self.count):
            low, rest = divmod(self.of(i), self.parts[2])
            takers[low] += 1
            if rest:
                takers[low + 1] += 1
        return max(takers)


def _share(part: Term, unit: Term, dtype: DType) -> Term:
    """A part of a unit as a float."""
    return part.arena.cast(part, dtype) * (1.0 / part.arena.cast(unit, dtype))


@composite
class Interpolate(Chainer):
    """`src` with `count` places along `axis`, linear between its own `size`; see `Places`."""

    src: Expr
    axis: int
    size: Size
    count: Size
    corners: bool
    kinds: Kinds

    @property
    def places(self) -> Places:
        """Those of the result."""
        return Places(self.size, self.count, self.corners, self.kinds)

    def infer(self) -> tuple[tuple[int, ...], DType]:
        shape = self.src.shape
        return (*shape[: self.axis], self.count, *shape[self.axis + 1 :]), self.src.dtype

    def at(self, i: Index) -> Term:
        p, arena = self.places, i.arena
        place = p.term(p.index(i[self.axis]))
        unit = number(p.parts[2], place)
        low = quotient(place, unit, p.kinds)
        high = arena.op("min", low + 1, number(p.size, low) - 1)
        rows = (i.put(self.axis, arena.cast(at, dt.int64)) for at in (low, high))
        a, b = (i.elem(self.src, row) for row in rows)
        share = _share(place - low * unit, unit, a.dtype)
        return a * (1.0 - share) + b * share

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        places = self.size, self.count, self.corners, self.kinds
        return ((self.src, InterpolateGrad(g, self.axis, *places, self.places.most())),)


@composite
class InterpolateGrad(Chainer):
    """What `Interpolate` sends back: each place gets its share of those near it, `most` at most."""

    grad: Expr
    axis: int
    size: Size
    count: Size
    corners: bool
    kinds: Kinds
    most: Size
    rereads: ClassVar[bool] = True  # each sum of a row once, beside those of columns

    @property
    def places(self) -> Places:
        """Those of what was made."""
        return Places(self.size, self.count, self.corners, self.kinds)

    def infer(self) -> tuple[tuple[int, ...], DType]:
        shape = self.grad.shape
        return (*shape[: self.axis], self.size, *shape[self.axis + 1 :]), self.grad.dtype

    def at(self, i: Index) -> Term:
        p, arena = self.places, i.arena
        here = p.index(i[self.axis])
        unit = number(p.parts[2], here)
        start = self.first(here)

        def body(k: Index) -> Term:
            at = start + arena.cast(k[0], start.dtype)
            away = p.term(at) - here * unit
            share = unit - arena.op("max", away, -away)
            inside = (share > 0) & (at < number(p.count, at))
            value = i.elem(self.grad, i.put(self.axis, arena.cast(at, dt.int64)))
            return i.guard(inside, value * _share(share, unit, value.dtype), 0)

        return i.fold(SUM, [self.most], body)

    def first(self, here: Term) -> Term:
        """The first place of the result that takes of this one."""
        step, begin, unit = self.places.parts
        if isinstance(step, int) and not step:
            return here.like(0)
        step, begin, unit = (number(n, here) for n in (step, begin, unit))
        after = (here - 1) * unit - begin + step  # not negative but for place 0
        return here.arena.select(here.eq(0), here.like(0), quotient(after, step, self.kinds))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        places = self.size, self.count, self.corners, self.kinds
        return ((self.grad, Interpolate(g, self.axis, *places)),)


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
    size = src.shape[axis]
    kinds = kinds_below((count + size + 2) * 2 * max(size, count))
    return Interpolate(src, axis, size, count, bool(corners), kinds)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    for corners in (True, False):
        yield interpolate(Buffer((2, 5, 3)), 1, 7, corners)
        yield interpolate(Buffer((3, 9)) * 2.0, -1, 4, corners)
        yield interpolate(Buffer((4,), dt.float64), 0, 1, corners)
        yield interpolate(Buffer((1, 2)), 0, 3, corners)
