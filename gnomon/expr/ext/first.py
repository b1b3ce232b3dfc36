"""first: the first of several trials that is good; kernels make no further ones."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import fn
from gnomon.expr.arguments import explained
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.ext.reduce import arg_reduce
from gnomon.expr.ext.take import Place, pick
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.expr.reducer import FIRST, NEVER
from gnomon.expr.term import Term


@composite
class First(Chainer):
    """The first element along the last axis of `trials` where `good` is not 0, else `other`."""

    good: Expr
    trials: Expr
    other: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        if not self.trials.shape or self.good.shape != self.trials.shape:
            expected = f"the shape of {self.trials!r}, with an axis of trials"
            raise ShapeError(complaint("first", "good", expected, f"{self.good!r}"))
        if self.other.shape != self.trials.shape[:-1]:
            expected = f"the shape of {self.trials!r} without its last axis"
            raise ShapeError(complaint("first", "other", expected, f"{self.other!r}"))
        if self.other.dtype is not self.trials.dtype:
            expected = f"dtype {self.trials.dtype.name}"
            raise DTypeError(complaint("first", "other", expected, f"{self.other!r}"))
        return self.other.shape, self.trials.dtype

    def at(self, i: Index) -> Term:
        arena = i.arena
        never = arena.const(NEVER, dt.int32)

        def bodies(k: tuple[Term, ...]) -> tuple[Term, ...]:
            good = i.elem(self.good, (*i, *k))
            position = arena.cast(k[0], dt.int32)
            hit = arena.op("ne", good, good.like(0))
            return arena.select(hit, position, never), i.elem(self.trials, (*i, *k))

        position, value = arena.fold(FIRST, [self.trials.shape[-1]], bodies)
        return i.select(position < never, value, i.elem(self.other, i))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        if not self.trials.shape[-1]:
            return ((self.other, g),)
        hit = cast(fn.ne(self.good, 0), g.dtype)
        where = arg_reduce(hit, "max", -1)
        found = pick(hit, where)
        to_trials = Place(where, fn.where(found, g, 0), self.trials.shape[-1])
        return (self.trials, to_trials), (self.other, fn.where(found, 0, g))


@explained
def first(good: Expr, trials: Expr, other: Expr) -> Expr:
    """The first element of each row (along the last axis) of `trials` where `good` is not 0.

    Where none is, the element of `other`. A kernel computes no further than it must.

    >>> first(Buffer((5, 8)), Buffer((5, 8)), Buffer((5,))).shape
    (5,)

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: `other` has another dtype.
    """
    return First(good, trials, other)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    x = Buffer((5, 3))
    yield first(x > 0.5, x * 2.0, Buffer((5,)))
    yield first(Buffer((2, 40), dt.int32), Buffer((2, 40)), Buffer((2,)))
    yield first(Buffer((2, 0)), Buffer((2, 0)), Buffer((2,)))
