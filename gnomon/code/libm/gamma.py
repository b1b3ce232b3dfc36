"""gamma, its logarithm and the derivatives of that.

Arguments a = |x| below 4 are moved up by 4, with the product a (a + 1) (a + 2) (a + 3); from there
asymptotic series hold. Negative arguments are reflected. float32 is computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gnomon import dtype as dt
from gnomon.code.libm import tables
from gnomon.code.libm.exponential import LN2, exp_rest
from gnomon.code.libm.kit import INF, NAN, Kit
from gnomon.code.libm.logarithm import LOG2_E, log
from gnomon.code.libm.power import long_log2
from gnomon.code.libm.trigonometric import sinpi
from gnomon.expr.term import Term
from gnomon.ground.record import record

SHIFT = 4.0


def in_double(rule: Callable[[Kit, Term], Term]) -> Callable[[Kit, Term], Term]:
    """`rule` of float64, for both formats."""

    def either(k: Kit, x: Term) -> Term:
        if not k.single:
            return rule(k, x)
        d = Kit(k.arena, dt.float64, k.has)
        return k.arena.cast(rule(d, k.arena.cast(x, dt.float64)), dt.float32)

    return either


@record()
class Moved:
    """w = a from 4 up, else a + 4; exactly a - `left`, where the sum would have been rounded.

    With b = a - left: `p` = (b + 1) (b + 2) (b + 3), `p1` its derivative, `p2` half of that one's.
    """

    low: Term
    w: Term
    left: Term
    p: Term
    p1: Term
    p2: Term

    @classmethod
    def of(cls, k: Kit, a: Term) -> Moved:
        """By Horner's rule."""
        low = a < SHIFT
        w = k.select(low, a + SHIFT, a)
        b = k.select(low, w - SHIFT, 1.0)
        p = k.poly(b, (6.0, 11.0, 6.0, 1.0))
        p1 = k.poly(b, (11.0, 12.0, 3.0))
        return cls(low, w, k.select(low, a - b, 0.0), p, p1, k.fma(b, 3.0, 6.0))

    def product(self, k: Kit, a: Term) -> Term:
        """a (a + 1) (a + 2) (a + 3), or 1 where nothing was moved."""
        return k.select(self.low, a * k.fma(self.left, self.p1, self.p), 1.0)


@in_double
def gammaln(k: Kit, x: Term) -> Term:
    """log |gamma(x)|: a polynomial around 2, from 4.5 up Stirling's series.

    What lies up to 2.5 from 2 is moved there by whole steps; one logarithm takes the product of
    these and the reflection together.
    """
    a = k.op("abs", x)
    large = k(4.5) <= a
    inverse, log_a = 1.0 / a, log(k, a)
    series = inverse * k.poly(inverse * inverse, tables.STIRLING)
    stirling = k.fma(a - 0.5, log_a, 0.5 * math.log(2.0 * math.pi) - a) + series
    n, _ = k.near(k.at_most(a, 4.5), 1.0)
    t = a - n
    base = k.select(large, stirling, t * k.poly(t, tables.GAMMALN))
    steps = k.select(n < 1.0, a * (a + 1.0), k.select(n < 2.0, a, 1.0))
    above = (k(2.0) < n) & (a < 4.5)
    steps = k.select(above, k.select(k(3.0) < n, (a - 1.0) * (a - 2.0), a - 1.0), steps)
    steps = k.select(large, 1.0, steps)
    negative = (x < 0.0) & (k(2.0**-60) < a)  # nearer to 0 the sign does not matter
    sine = sinpi(k, x)
    bow = math.pi / (a * k.op("abs", sine))
    reflected = k.select(above, bow / steps, bow * steps)
    taken = log(k, k.select(negative, reflected, steps))
    value = k.select(negative, taken - base, k.select(above, base + taken, base - taken))
    return k.select(a.eq(INF) | (negative & sine.eq(0.0)), INF, value)


@in_double
def gamma(k: Kit, x: Term) -> Term:
    """w^(w - 1/2) e^-w as a power of 2 whose exponent is a sum of two numbers."""
    a = k.op("abs", x)
    m = Moved.of(k, k.at_most(a, 200.0))
    inverse = 1.0 / m.w
    high, low = long_log2(k, m.w)
    b = m.w - 0.5
    t, t_low = k.two_product(b, high)
    e, e_low = k.two_product(m.w, LOG2_E[1][0])
    exponent, rounding = k.two_sum(t, -e)
    slope = k.fma(inverse, -0.5 * LOG2_E[1][0], high)
    rest = k.fma(b, low, t_low) - k.fma(m.w, LOG2_E[1][1], e_low)
    rest = rounding + k.fma(m.left, slope, rest)
    n, _ = k.near(exponent, 1.0)
    fraction = exp_rest(k, ((exponent - n) + rest) * LN2)
    size = k.scalb(fraction * k.poly(inverse, tables.SCALED_GAMMA), n) / m.product(k, a)
    size = k.select(a < 200.0, size, k.select(x.eq(x), INF, x))
    sine = sinpi(k, x)
    reflected = k.select(sine.eq(0.0), NAN, math.pi / (sine * a * size))
    value = k.select(x < 0.0, reflected, size)
    return k.select(a < 2.0**-60, 1.0 / x, k.select(x.eq(-INF), NAN, value))


@in_double
def digamma(k: Kit, x: Term) -> Term:
    """log w - 1 / (2 w) - ..., less the sum of 1 / (a + j)."""
    a = k.op("abs", x)
    m = Moved.of(k, a)
    inverse = 1.0 / m.w
    z = inverse * inverse
    series = k.fma(z, k.poly(z, tables.DIGAMMA), 0.5 * inverse)
    above = (log(k, m.w) - k.select(m.low, m.p1 / m.p, 0.0)) - series  # digamma(a + 1), if low
    d = x - k.op("rint", x)
    turn = 1.0 / d - d * k.poly(d * d, tables.COTANGENT)  # pi / tan(pi x)
    turned = k.select(m.low, above, above + 1.0 / a) - k.select(d.eq(0.0), NAN, turn)
    value = k.select(x < 0.0, turned, k.select(m.low, above - 1.0 / a, above))
    return k.select(a < 2.0**-60, -1.0 / x, value)


@in_double
def trigamma(k: Kit, x: Term) -> Term:
    """1 / w + 1 / (2 w^2) + ..., and the sum of 1 / (a + j)^2, for j > 0 from p and its slopes."""
    a = k.op("abs", x)
    m = Moved.of(k, a)
    inverse = 1.0 / m.w
    z = inverse * inverse
    series = inverse + k.fma(z * inverse, k.poly(z, tables.TRIGAMMA), 0.5 * z)
    ratio = m.p1 / m.p
    square = 1.0 / (a * a)
    moved = k.fma(ratio, ratio, -2.0 * (m.p2 / m.p)) + square
    value = series + k.select(m.low, moved, 0.0)
    bow = math.pi / sinpi(k, x)
    value = k.select(x < 0.0, bow * bow - (value - square), value)
    return k.select(a < 2.0**-60, square, value)
