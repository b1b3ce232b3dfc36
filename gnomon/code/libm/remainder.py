"""fmod: what is left of a when the whole quotient a / b, toward zero, is taken off; exact."""

from __future__ import annotations

from gnomon import dtype as dt
from gnomon.code.libm.kit import Kit
from gnomon.expr.term import Term

NEAR = (2.0**22, 2.0**51)  # quotients below are whole numbers of the format, or next to one
BITS = 51  # that a step takes off a quotient of float64
LONGEST = 277  # bits of a quotient of float32
FAR = 200  # bits of float64's that are not the rarest


def fmod(k: Kit, a: Term, b: Term) -> Term:
    """By one division while the quotient is near, by several in float64 where it is not."""
    x, y = k.op("abs", a), k.op("abs", b)
    quotient = x / y
    near = k.select(quotient < 1.0, x, reduced(k, x, y, 1))  # of an infinite b as well
    far = k(NEAR[not k.single]) <= quotient
    return k.op("copysign", k.rare(far, far_rest(k, x, y, quotient), near), a)


def far_rest(k: Kit, x: Term, y: Term, quotient: Term) -> Term:
    """The remainder of any finite quotient."""
    if k.single:
        wide = Kit(k.arena, dt.float64, k.has)
        long_x, long_y = k.arena.cast(x, dt.float64), k.arena.cast(y, dt.float64)
        return k.arena.cast(reduced(wide, long_x, long_y, steps(LONGEST)), dt.float32)
    return k.rare(k(2.0**FAR) <= quotient, farthest(k, x, y), reduced(k, x, y, steps(FAR)))


def farthest(k: Kit, x: Term, y: Term) -> Term:
    """Of float64, whose quotients have up to 2098 bits: by large multiples of y first.

    2^970 y where that is a number, and 2^1870 y where x / y has more than 1924 bits: no quotient
    overflows.
    """
    large = k.select(y < 2.0**50, y * 2.0**970, y)
    largest = k.select(y < 2.0**-900, large * 2.0**900, large)
    x = reduced(k, x, largest, steps(960))
    return reduced(k, reduced(k, x, large, steps(960)), y, steps(980))


def steps(bits: int) -> int:
    """How many it takes for a quotient of so many bits."""
    return -(-bits // BITS)


def reduced(k: Kit, x: Term, y: Term, count: int) -> Term:
    """x less whole multiples of y, from 0 to below y.

    What a rounded quotient leaves of x is exact: it has no more bits than the quotient's error. It
    may be less than nothing; then y more is the remainder.
    """
    for _ in range(count):
        x = k.fnma(k.op("trunc", x / y), y, x)
    return k.select(x < 0.0, x + y, x)
