"""erf, by a polynomial for -log(1 - erf), its inverse, and the normal distribution."""

from __future__ import annotations

from gnomon.code.libm import tables
from gnomon.code.libm.exponential import LN2_DOUBLE, LN2_SINGLE, LOG2_E, exp
from gnomon.code.libm.kit import INF, Kit
from gnomon.code.libm.logarithm import log
from gnomon.expr.term import Term


def erf(k: Kit, x: Term) -> Term:
    """1 - exp(-q) with q = x + x p(x), as in `expm1`."""
    a = k.at_most(k.op("abs", x), 4.0 if k.single else 6.0)
    q = k.fma(a, k.poly(a, k.pick(tables.ERF_SINGLE, tables.ERF_DOUBLE)), a)
    power, t = decay(k, q, 0)
    return k.op("copysign", k.fma(power, t, power - 1.0), x)


def decay(k: Kit, q: Term, halvings: int) -> tuple[Term, Term]:
    """2^-halvings exp(-q) = s (1 + t): a power of 2, and the rest less 1."""
    f = k.format
    n, shifted = k.near(q, -LOG2_E, f.bias - halvings)
    s = k.from_bits(k.shl(k.bits(shifted), f.mantissa))
    r = k.fnma(k.pick(LN2_SINGLE, LN2_DOUBLE)[0], n, -q)
    return s, k.fma(r * r, k.poly(r, k.pick(tables.EXP_SINGLE, tables.EXP_DOUBLE)), r)


def ndtr(k: Kit, x: Term) -> Term:
    """exp(-q) / 2 left of 0 with q = |x| p(|x|), exact in its last places however small; 1 less
    that right of it."""
    a = k.op("abs", x)
    b = k.at_most(a, 3.0)
    s, t = decay(k, b * k.poly(b, k.pick(tables.NDTR_SINGLE, tables.NDTR_DOUBLE)), 1)
    tail = k.rare(k(3.0) < a, ndtr_tail(k, a), k.fma(s, t, s))
    return k.select(x < 0.0, tail, 1.0 - tail)


def ndtr_tail(k: Kit, a: Term) -> Term:
    """exp(-a^2 / 2) p(1 / (a + 3)) / (a + 3), with the square in two parts."""
    a = k.at_most(a, 15.0 if k.single else 40.0)
    high, low = k.two_product(a, a)
    t = 1.0 / (a + 3.0)
    ratio = t * k.poly(t, k.pick(tables.NDTR_TAIL_SINGLE, tables.NDTR_TAIL_DOUBLE))
    return exp(k, high * -0.5) * k.fma(ratio, low * -0.5, ratio)


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
