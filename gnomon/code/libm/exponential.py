"""exp, exp2, expm1 and the hyperbolic functions.

All of them: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r, and 2^n put into the exponent.
"""

from __future__ import annotations

from gnomon.code.libm import tables
from gnomon.code.libm.kit import Kit
from gnomon.expr.term import Term

LOG2_E, LN2 = 1.4426950408889634, 0.6931471805599453
# ln 2 in two parts: n * high is exact in a fused multiply-add that cancels the leading digits
LN2_SINGLE = (0.693147182464599609375, -1.904654299957767878541e-9)
LN2_DOUBLE = (0.6931471805599453094172, 2.319046813846299558418e-17)


def rest(k: Kit, x: Term, n: Term) -> Term:
    """x - n ln 2."""
    high, low = k.pick(LN2_SINGLE, LN2_DOUBLE)
    return k.fnma(low, n, k.fnma(high, n, x))


def exp_rest(k: Kit, r: Term) -> Term:
    """exp(r) for |r| <= ln 2 / 2."""
    if k.single:
        return k.poly(r, (1.0, 1.0, *tables.EXP_SINGLE))
    return k.fma(r * r, k.poly(r, tables.EXP_DOUBLE), r) + 1.0


def exp(k: Kit, x: Term) -> Term:
    """Beyond the clamps the result is 0 or infinite: they only keep n in range."""
    low, high = k.pick((-104.0, 89.0), (-746.0, 710.0))
    x = k.at_most(k.at_least(x, low), high)
    n, _ = k.near(x, LOG2_E)
    return k.scalb(exp_rest(k, rest(k, x, n)), n)


def half_exp(k: Kit, a: Term) -> Term:
    """exp(a) / 2 for a >= 0, which overflows where sinh and cosh do."""
    a = k.at_most(a, 91.0 if k.single else 712.0)
    n, _ = k.near(a, LOG2_E)
    return k.scalb(exp_rest(k, rest(k, a, n)), n - 1.0)


def exp2(k: Kit, x: Term) -> Term:
    """As `exp`, with nothing to round in the reduction."""
    low, high = k.pick((-151.0, 129.0), (-1076.0, 1025.0))
    x = k.at_most(k.at_least(x, low), high)
    n, _ = k.near(x, 1.0)
    return k.scalb(exp_rest(k, (x - n) * LN2), n)


def expm1(k: Kit, x: Term) -> Term:
    """2 (s q + (s - 1/2)) with q = exp(r) - 1 and s = 2^(n - 1), which does not overflow early.

    Above 0 the reduction is centred so that r > -0.1: there s q + (s - 1/2) would cancel.
    """
    f = k.format
    low, high = k.pick((-18.0, 89.0), (-38.0, 710.0))
    y = k.at_most(k.at_least(x, low), high)
    centred = k.fma(y, LOG2_E, k.select(k(0.0) < y, -0.36, 0.0))
    n, shifted = k.near(centred, 1.0, f.bias - 1)
    s = k.power_near(shifted)
    r = rest(k, y, n)
    q = k.fma(r * r, k.poly(r, k.pick(tables.EXPM1_SINGLE, tables.EXPM1_DOUBLE)), r)
    half = k.fma(s, q, s - 0.5)
    return k.op("copysign", half + half, x)


def tanh(k: Kit, x: Term) -> Term:
    """y = h / (h + 1) with h = (exp(2 |x|) - 1) / 2; near 0 h - h y, where only h y is inexact.

    The quotient adds two roundings to that of h, the difference one and a part of theirs. r leaves
    out the low part of n ln 2 and so is exact for n <= 1; float64 needs that part, and takes it in
    with the small terms.
    """
    f = k.format
    a = k.at_most(k.op("abs", x), 10.0 if k.single else 20.0)
    n, shifted = k.near(a, 2.0 * LOG2_E, f.bias - 1)
    s = k.power_near(shifted)
    high, low = k.pick(LN2_SINGLE, LN2_DOUBLE)
    r = k.fnma(high, n, a + a)
    p = k.poly(r, k.pick(tables.EXP_SINGLE, tables.EXP_DOUBLE))
    q = k.fma(r * r, p, r) if k.single else r + k.fma(r * r, p, n * -low)
    h = k.fma(s, q, s - 0.5)
    y = h / (h + 1.0)
    return k.op("copysign", k.select(h < 0.45, k.fnma(h, y, h), y), x)


def sinh(k: Kit, x: Term) -> Term:
    """An odd polynomial near 0, elsewhere (exp(x) - exp(-x)) / 2."""
    a = k.op("abs", x)
    e = half_exp(k, a)
    near = k.odd(a, tables.SINH_SINGLE, tables.SINH_DOUBLE)
    return k.op("copysign", k.select(a < 1.0, near, e - 0.25 / e), x)


def cosh(k: Kit, x: Term) -> Term:
    """(exp(x) + exp(-x)) / 2."""
    e = half_exp(k, k.op("abs", x))
    return e + 0.25 / e
