"""Division by what a loop does not change: by its reciprocal, to the same last bit.

With r = 1/b rounded, q = a r is off by its last place or so; a - q b is exact by a fused
multiply-add, and q + (a - q b) r is a/b as rounded once (Markstein). That takes a quarter of a
division's time. It needs that nothing overflows or gets lost below the normal numbers: b is looked
at once, and lanes of which it is not so send their vector the long way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from gnomon import dtype as dt
from gnomon.code.emit import Value
from gnomon.code.values import Values
from gnomon.dtype import DType
from gnomon.expr.term import Term, mask_of
from gnomon.plan.ir import Body, Fold, Let, every
from gnomon.plan.terms import postorder


class Range(NamedTuple):
    """Divisors from `low` to `high`, and dividends of 0 or at least `least`, need no care."""

    integer: DType
    low: float
    high: float
    least: float


RANGES = {
    dt.float32: Range(dt.uint32, 2.0**-20, 2.0**24, 2.0**-100),
    dt.float64: Range(dt.uint64, 2.0**-200, 2.0**200, 2.0**-700),
}


class Divider(Values):
    """Keeps reciprocals of divisors that are known before a loop begins."""

    def reciprocals(self, bodies: Iterable[Body], variables: int) -> None:
        """Those of what the loops over `variables` and inside of `bodies` divide by."""
        if "fma" not in self.e.target.has:
            return
        for term in list(_divisions(bodies)):
            a, b = term.args
            inside = variables | mask_of(_folded(bodies))
            if a.free & inside and not b.free & inside and self.reciprocal_of(b) is None:
                found = self.reciprocal(b)
                if found is not None:
                    self.scopes[-1]["reciprocal", b.id] = found

    def reciprocal_of(self, b: Term) -> Value | None:
        """The reciprocal of a divisor, where there is one."""
        key = "reciprocal", b.id
        return next((s[key] for s in reversed(self.scopes) if key in s), None)

    def reciprocal(self, b: Term) -> Value | None:
        """1/b, or NaN where b needs care; None where a constant is as good a factor."""
        e, dtype, fit = self.e, b.dtype, RANGES[b.dtype]
        if b.constant is not None:
            plain = np.frexp(b.constant)[0] == 0.5 or not fit.low <= b.constant <= fit.high
            return None if plain else e.constant(dtype.numpy.type(1) / b.constant, dtype)
        value = self.value(b)
        if value.lanes > 1:
            return None
        above = e.primitive("le", [e.constant(fit.low, dtype), value], dt.bool_)
        below = e.primitive("le", [value, e.constant(fit.high, dtype)], dt.bool_)
        fits = e.primitive("and", [above, below], dt.bool_)
        inverse = e.primitive("div", [e.constant(1.0, dtype), value], dtype)
        return e.primitive("select", [fits, inverse, e.constant(float("nan"), dtype)], dtype)

    def operate(self, term: Term, args: list[Value]) -> Value:
        if term.op == "div" and args[0].lanes > 1:
            inverse = self.reciprocal_of(term.args[1])
            if inverse is not None:
                return self.divided(args[0], args[1], inverse)
        return super().operate(term, args)

    def divided(self, a: Value, b: Value, inverse: Value) -> Value:
        """a / b for every lane of `a`."""
        e, dtype, lanes = self.e, a.dtype, a.lanes
        b, r = e.spread(b, lanes), e.spread(inverse, lanes)
        near = e.primitive("mul", [a, r], dtype)
        rest = e.primitive("fma", [near, b, e.primitive("neg", [a], dtype)], dtype)
        minus = e.primitive("neg", [rest], dtype)
        result = e.primitive("fma", [minus, r, near], dtype)
        doubt = e.primitive("or", [self.smallest(a), self.lost(result)], dt.bool_)
        slow = self.any_lane(doubt)
        return self.detour(slow, result, lambda: e.primitive("div", [a, b], dtype))

    def smallest(self, a: Value) -> Value:
        """Whether there are numbers other than 0 that need care, in any of some lanes."""
        e, fit, lanes = self.e, RANGES[a.dtype], a.lanes
        least = 2 * int(a.dtype.numpy.type(fit.least).view(fit.integer.numpy)) - 1
        bits = e.bitcast(a, fit.integer)
        size = e.primitive("add", [bits, bits], fit.integer)  # without the sign
        size = e.primitive("add", [size, e.constant(-1, fit.integer, lanes)], fit.integer)
        while size.lanes * size.dtype.size > e.target.vector_bytes:  # less one, 0 is the greatest
            size = e.primitive("min", self.halves(size), fit.integer)
        return e.primitive("lt", [size, e.constant(least, fit.integer, size.lanes)], dt.bool_)

    def lost(self, result: Value) -> Value:
        """Whether there are NaNs in any of as many lanes."""
        while result.lanes * result.dtype.size > 2 * self.e.target.vector_bytes:
            result = self.e.primitive("add", self.halves(result), result.dtype)
        if result.lanes * result.dtype.size > self.e.target.vector_bytes:
            low, high = self.halves(result)
        else:
            low = high = result
        return self.e.do(f"fcmp uno {low}, {high.name}", dt.bool_, low.lanes)

    def halves(self, value: Value) -> list[Value]:
        half = value.lanes // 2
        return [self.part(value, range(half)), self.part(value, range(half, 2 * half))]


def _divisions(bodies: Iterable[Body]) -> Iterator[Term]:
    """The divisions of floats inside of bodies, those of their folds included."""
    roots = [root for body in bodies for root in _roots(body)]
    return (t for t in postorder(roots) if t.op == "div" and t.dtype in RANGES)


def _roots(body: Body) -> Iterator[Term]:
    for stmt in body:
        if isinstance(stmt, Let):
            yield stmt.term
        elif isinstance(stmt, Fold):
            yield from stmt.terms
        else:
            yield stmt.value


def _folded(bodies: Iterable[Body]) -> list[int]:
    """The variables of the folds inside of bodies."""
    folds = [s for body in bodies for s in every(body) if isinstance(s, Fold)]
    return [v for fold in folds for v in fold.vars]
