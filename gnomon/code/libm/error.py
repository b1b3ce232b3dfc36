"""erf, by a polynomial for -log(1 - erf), and its inverse."""

from __future__ import annotations

from gnomon.code.libm import tables
from gnomon.code.libm.exponential import LN2_DOUBLE, LN2_SINGLE, LOG2_E
from gnomon.code.libm.kit import INF, Kit
from gnomon.code.libm.logarithm import log
from gnomon.expr.term import Term


def erf(k: Kit, x: Term) -> Term:
    """1 - exp(-q) with q = x + x p(x), as in `expm1`."""
    f = k.format
    a = k.at_most(k.op("abs", x), 4.0 if k.single else 6.0)
    q = k.fma(a, k.poly(a, k.pick(tables.ERF_SINGLE, tables.ERF_DOUBLE)), a)
    n, shifted = k.near(q, -LOG2_E, f.bias)
    power = k.from_bits(k.shl(k.bits(shifted), f.mantissa))
    r = k.fnma(k.pick(LN2_SINGLE, LN2_DOUBLE)[0], n, -q)
    t = k.fma(r * r, k.poly(r, k.pick(tables.EXP_SINGLE, tables.EXP_DOUBLE)), r)
    return k.op("copysign", k.fma(power, t, power - 1.0), x)


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
