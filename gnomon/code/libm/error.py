"""erf, by a polynomial for -log(1 - erf), its inverse, and gelu by the tail of the normal."""

from __future__ import annotations

from collections.abc import Callable

from gnomon.code.libm import tables
from gnomon.code.libm.exponential import LN2_DOUBLE, LN2_SINGLE, LOG2_E, exp_rest, rest
from gnomon.code.libm.kit import INF, Kit
from gnomon.code.libm.logarithm import log
from gnomon.expr.functions.derivative import NORMAL_AT_ZERO
from gnomon.expr.term import Term

# Where polynomials of the normal tail end, of gelu and of its slope, in float32 and float64.
NEAR, NEAR_SLOPE = (3.0, 3.0), (4.0, 3.0)
MIDDLE = 1.25  # the polynomial of the slope is one of a - MIDDLE
GONE = 6.5  # beside a float32 above this the tail is nothing


def erf(k: Kit, x: Term) -> Term:
    """1 - exp(-q) with q = x + x p(x), as in `expm1`."""
    a = k.at_most(k.op("abs", x), 4.0 if k.single else 6.0)
    q = k.fma(a, k.poly(a, k.pick(tables.ERF_SINGLE, tables.ERF_DOUBLE)), a)
    n, shifted = k.near(q, -LOG2_E, k.format.bias)
    power = k.power_near(shifted)
    r = k.fnma(k.pick(LN2_SINGLE, LN2_DOUBLE)[0], n, -q)
    t = k.fma(r * r, k.poly(r, k.pick(tables.EXP_SINGLE, tables.EXP_DOUBLE)), r)
    return k.op("copysign", k.fma(power, t, power - 1.0), x)


def gelu(k: Kit, x: Term) -> Term:
    """max(x, 0) less |x| times the normal tail: of small numbers below 0 no place is lost.

    The tail is 2^-(a^2 + a p(a)) / 2, the square in two parts: beside a^2 in the exponent of 2 the
    rest is small, and hardly rounded.
    """
    f, above = k.format, k.at_least(x, 0.0)
    a, is_far = _size(k, x, NEAR)
    square = a * a
    small = k.fnma(
        a, k.poly(a, k.pick(tables.NDTR_SINGLE, tables.NDTR_DOUBLE)), k.fnma(a, a, square)
    )
    n, shifted = k.near(small - square, 1.0, f.bias - 1)
    r = small - (square + n)
    power = k.power_near(shifted)
    tail = k.fma(power, r * k.poly(r, k.pick(tables.EXP2_SINGLE, tables.EXP2_DOUBLE)), power)
    far = above - far_tail(k, k.op("abs", x), lambda a, z, ratio: ratio)
    return k.rare(is_far, far, k.fnma(a, tail, above))


def gelu_slope(k: Kit, x: Term) -> Term:
    """The normal distribution and x times its density: below 0 the tail less |x| times that.

    The tail is exp(-a^2 / 2) p(a - 1.25), so that both have one exponential.
    """
    f = k.format
    a, is_far = _size(k, x, NEAR_SLOPE)
    square, low = k.two_product(a, a * -0.5)
    n, shifted = k.near(square, LOG2_E, f.bias)
    r = rest(k, square, n) + low
    t = k.fma(r * r, k.poly(r, k.pick(tables.EXP_SINGLE, tables.EXP_DOUBLE)), r)
    ratio = k.poly(a - MIDDLE, k.pick(tables.NDTR_SCALED_SINGLE, tables.NDTR_SCALED_DOUBLE))
    power = k.power_near(shifted)
    near = power * k.fma(a, -NORMAL_AT_ZERO, ratio)
    far = far_tail(k, k.op("abs", x), lambda a, z, ratio: a * k.fma(z, ratio, -NORMAL_AT_ZERO))
    below = k.rare(is_far, far, k.fma(near, t, near))
    return k.select(x < 0.0, below, 1.0 - below)


def _size(k: Kit, x: Term, near: tuple[float, float]) -> tuple[Term, Term]:
    """|x|, and whether x is where polynomials up to `near` do not hold.

    Above 0 the tail's last place does not count: there they do for every float32.
    """
    a, (single, double) = k.op("abs", x), near
    return (k.at_most(a, GONE), x < -single) if k.single else (a, k(double) < a)


def far_tail(k: Kit, a: Term, weigh: Callable[[Term, Term, Term], Term]) -> Term:
    """exp(-a^2 / 2) times what `weigh` makes of `a`, z = 1 / a^2 and p(z).

    exp(-a^2 / 2) p(z) is `a` times the normal tail. Whatever is multiplied is small last: each
    place is right down to the smallest number.
    """
    a = k.at_most(a, 15.0 if k.single else 40.0)
    z = 1.0 / (a * a)
    ratio = weigh(a, z, k.poly(z, k.pick(tables.NDTR_TAIL_SINGLE, tables.NDTR_TAIL_DOUBLE)))
    square, low = k.two_product(a, a * -0.5)
    n, _ = k.near(square, LOG2_E)
    return k.scalb(exp_rest(k, rest(k, square, n)) * k.fma(ratio, low, ratio), n)


def erfinv(k: Kit, x: Term) -> Term:
    """x p(w) with w = -log(1 - x^2), in its square root where that is large (after Giles)."""
    w = -log(k, (1.0 - x) * (x + 1.0))
    root = k.op("sqrt", w)
    near = k.poly(w - 3.125, k.pick(tables.ERFINV_NEAR_SINGLE, tables.ERFINV_NEAR_DOUBLE))
    if k.single:
        tail = k.poly(root - 3.3, tables.ERFINV_TAIL_SINGLE)
    else:
        end = k.poly(root - 5.05, tables.ERFINV_END)
        tail = k.select(root < 4.0, k.poly(root - 3.25, tables.ERFINV_TAIL_DOUBLE), end)
    value = x * k.select(w < 6.25, near, tail)
    return k.select(k.op("abs", x).eq(1.0), x * INF, value)
