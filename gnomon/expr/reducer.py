"""Reducers: how many values become one, as an associative `combine` with a neutral `start`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, ParamError, complaint, shown
from gnomon.dtype import DType
from gnomon.expr.functions.scalar import SCALAR, ScalarFn
from gnomon.expr.term import Arena, Number, Term, cast_number
from gnomon.ground.record import record, reduced

if TYPE_CHECKING:
    from gnomon.expr.node import Expr

Values = tuple[Term, ...]


@record()
class Reducer:
    """`combine(arena, a, b)` of two partial results of `arity` values each.

    `start(dtype)` is neutral: combining with it changes nothing. `combine` must be associative
    and commutative: the compiler splits a reduction among lanes, threads and blocks, always in the
    same way for the same sizes. Equal `key`s mean equal code. Where `enough(arena, a)` holds of a
    partial result in the order of the index, whatever is still to come changes nothing. A `wide`
    one joins float32 in float64, one of `bits` joins integers alone.
    """

    name: str
    arity: int
    start: Callable[[DType], tuple[Number, ...]]
    combine: Callable[[Arena, Values, Values], Values]
    key: Hashable = None
    enough: Callable[[Arena, Values], Term] | None = None
    follow: Callable[[Arena, Values, Values], Values] | None = None
    wide: bool = False
    bits: bool = False

    def computed(self, dtype: DType) -> DType:
        """The dtype in which values of a dtype are joined."""
        return dt.float64 if self.wide and dtype is dt.float32 else dtype

    def dtypes(self, body: tuple[DType, ...]) -> tuple[DType, ...]:
        """The dtypes of the results for bodies of these dtypes."""
        return body

    def __reduce__(self) -> Any:
        """Built-in ones are themselves wherever they go; others are made anew."""
        if NAMED.get(self.name) is self:
            return named, (self.name,)
        return reduced(self)

    def __hash__(self) -> int:
        return hash((self.name, self.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reducer) and (self.name, self.key) == (other.name, other.key)


def check_numbers(where: str, argument: str, e: Expr, reducer: Reducer | None = None) -> None:
    """A DTypeError where `e` holds truth values, which have no sums, or floats, which no bits."""
    if reducer is not None and reducer.bits and e.dtype.kind == "f":
        expected = f"integers for {reducer.name}: cast it first"
        raise DTypeError(complaint(where, argument, expected, f"{e!r}"))
    if e.dtype is dt.bool_:
        expected = "a dtype of numbers: cast it first"
        raise DTypeError(complaint(where, argument, expected, f"{e!r}"))


def lowest(dtype: DType) -> Number:
    """The smallest number of `dtype`: -inf for floats."""
    return -float("inf") if dtype.kind == "f" else dtype.limits[0]


def highest(dtype: DType) -> Number:
    """The largest number of `dtype`: inf for floats."""
    return float("inf") if dtype.kind == "f" else dtype.limits[1]


def _simple(
    name: str, op: str, start: Callable[[DType], Number], wide: bool = False, bits: bool = False
) -> Reducer:
    def combine(arena: Arena, a: Values, b: Values) -> Values:
        return (arena.op(op, a[0], b[0]),)

    return Reducer(name, 1, lambda dtype: (start(dtype),), combine, wide=wide, bits=bits)


def _arg(name: str, start: Callable[[DType], Number], least: bool) -> Reducer:
    """The value and its position; the first of equals wins, and a NaN beats every number."""

    def better(a: Term, b: Term) -> Term:
        """Whether `b` comes before `a`; so does a NaN in either."""
        return ~(a <= b) if least else ~(b <= a)

    def combine(arena: Arena, a: Values, b: Values) -> Values:
        (va, ia), (vb, ib) = a, b
        earlier = ib < ia
        take = better(va, vb) | (vb.eq(va) & earlier)
        if va.dtype.kind == "f":
            nan_a, nan_b = arena.op("ne", va, va), arena.op("ne", vb, vb)
            take = take & (~nan_a | (nan_b & earlier))
        return arena.select(take, vb, va), arena.select(take, ib, ia)

    def follow(arena: Arena, a: Values, b: Values) -> Values:
        (va, ia), (vb, ib) = a, b
        take = better(va, vb)
        if va.dtype.kind == "f":
            take = take & va.eq(va)
        return arena.select(take, vb, va), arena.select(take, ib, ia)

    # nothing is the first of all: where nothing is better, that is the answer
    return Reducer(name, 2, lambda dtype: (start(dtype), 0), combine, follow=follow)


def _earlier(arena: Arena, a: Values, b: Values) -> Values:
    take = b[0] < a[0]
    return arena.select(take, b[0], a[0]), arena.select(take, b[1], a[1])


NEVER = dt.int32.limits[1]  # the position of what is not found
FIRST = Reducer("first", 2, lambda dtype: (NEVER, 0), _earlier, None, lambda arena, a: a[0] < NEVER)
SUM = _simple("sum", "add", lambda dtype: 0)
PROD = _simple("prod", "mul", lambda dtype: 1, wide=True)  # a part may overflow, the whole not
MAXIMUM = _simple("max", "max", lowest)
MINIMUM = _simple("min", "min", highest)
AND = _simple("bitwise_and", "and", lambda dtype: cast_number(-1, dtype), bits=True)
OR = _simple("bitwise_or", "or", lambda dtype: 0, bits=True)
XOR = _simple("bitwise_xor", "xor", lambda dtype: 0, bits=True)
ARGMAX = _arg("argmax", lowest, False)
ARGMIN = _arg("argmin", highest, True)


REDUCERS = {r.name: r for r in (SUM, PROD, MAXIMUM, MINIMUM, ARGMAX, ARGMIN, AND, OR, XOR)}


def from_operator(fn: ScalarFn, start: Number) -> Reducer:
    """A reducer of an operator, associative and commutative, with its neutral element.

    Raises:
        ParamError: it is no operator of two arguments, or the element no number.
    """
    if not isinstance(fn, ScalarFn) or fn.arity != 2:
        expected = "a scalar operator of 2 arguments (made by @op)"
        raise ParamError(complaint("red.make", "fn", expected, shown(fn)))
    start = start.item() if isinstance(start, np.generic) else start
    if not isinstance(start, bool | int | float):
        expected = "a number: what changes nothing"
        raise ParamError(complaint("red.make", "start", expected, shown(start)))

    begin, combine = partial(_always, start), partial(_joined, fn)  # which can be pickled
    bits = bool(fn.body.bits)
    return Reducer(f"user:{fn.name}", 1, begin, combine, (fn.key, start), bits=bits)


def _always(start: Number, dtype: DType) -> tuple[Number, ...]:
    return (start,)


def _joined(fn: ScalarFn, arena: Arena, a: Values, b: Values) -> Values:
    return (fn.terms(arena, (a[0], b[0])),)


def _logaddexp() -> Reducer:
    """The logarithm of a sum of exponentials."""
    made = from_operator(SCALAR["logaddexp"], -float("inf"))
    return Reducer("logaddexp", 1, made.start, made.combine)


LOGADDEXP = _logaddexp()
SCANNED = {r.name: r for r in (SUM, PROD, MAXIMUM, MINIMUM, LOGADDEXP, AND, OR, XOR)}
# those that mean the same in every process, by name
NAMED = {**REDUCERS, FIRST.name: FIRST, LOGADDEXP.name: LOGADDEXP}


def named(name: str) -> Reducer:
    """The built-in reducer of this name."""
    return NAMED[name]
