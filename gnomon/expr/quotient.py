"""Whole quotients by numbers that a kernel is given, which vectors divide as floats.

A division by a constant is a product, and one by an argument takes a vector apart; floats are
divided whole. The floor of a quotient of floats is the whole quotient wherever both numbers are
below 2**22 in float32, or 2**51 in float64: the true quotient is whole, or by 1 / b at least below
the next whole number, and it is rounded by less than that.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr.term import Term


class Kinds(NamedTuple):
    """The dtypes of whole numbers, and of the floats that divide them."""

    whole: DType
    real: DType


def kinds_below(limit: int) -> Kinds:
    """The narrowest that divide numbers below `limit`.

    >>> kinds_below(1000)
    Kinds(whole=int32, real=float32)
    """
    if limit < 1 << 22:
        return Kinds(dt.int32, dt.float32)
    return Kinds(dt.int32 if limit < dt.int32.limits[1] else dt.int64, dt.float64)


def quotient(a: Term, b: Term, kinds: Kinds) -> Term:
    """The whole quotient of numbers of `kinds`, of which `a` is not negative, `b` positive."""
    arena = a.arena
    exact = arena.cast(a, kinds.real) / arena.cast(b, kinds.real)
    return arena.cast(arena.op("floor", exact), kinds.whole)


def number(n: Term | int, like: Term) -> Term:
    """A size as a number of another's dtype."""
    return like.arena.cast(n, like.dtype) if isinstance(n, Term) else like.like(n)
