"""exp, exp2, expm1 and the hyperbolic functions.

All of them: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r, and 2^n put into the exponent.
"""

from __future__ import annotations

from gnomon.code.libm.kit import Kit
from gnomon.expr.term import Term

LOG2_E = 1.4426950408889634
# ln 2 in two parts: n * high is exact in a fused multiply-add that cancels the leading digits
LN2_SINGLE = (0.693147182464599609375, -1.904654299957767878541e-9)
LN2_DOUBLE = (0.6931471805599453094172, 2.319046813846299558418e-17)

# (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2
EXP_SINGLE = (
    0.49999994, 0.16666521, 0.041668389, 0.0083687166, 0.0013814627,
)  # fmt: skip
EXP_DOUBLE = (
    0.5000000000000011, 0.16666666666666413, 0.041666666666530155, 0.008333333333494399,
    0.0013888888943631085, 0.00019841269506688846, 2.4801493097828538e-05,
    2.755758629088442e-06, 2.763024879588082e-07, 2.500008442577437e-08,
)  # fmt: skip
# (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.55
TANH_SINGLE = (-0.33332947, 0.13320723, -0.052671619, 0.016437173)
TANH_DOUBLE = (
    -0.3333333333333231, 0.1333333333316856, -0.05396825387600717, 0.021869485973098415,
    -0.008863194481287829, 0.003591719513174798, -0.0014532158394081392,
    0.000579134268420931, -0.00021029786045815945, 5.1018301449549274e-05,
)  # fmt: skip


def rest(k: Kit, x: Term, n: Term) -> Term:
    """x - n ln 2."""
    high, low = k.pick(LN2_SINGLE, LN2_DOUBLE)
    return k.fnma(low, n, k.fnma(high, n, x))


def exp(k: Kit, x: Term) -> Term:
    """Beyond the clamps the result is 0 or infinite: they only keep n in range."""
    low, high = k.pick((-104.0, 89.0), (-746.0, 710.0))
    x = k.at_most(k.at_least(x, low), high)
    n, _ = k.near(x, LOG2_E)
    r = rest(k, x, n)
    return k.scalb(k.poly(r, (1.0, 1.0, *k.pick(EXP_SINGLE, EXP_DOUBLE))), n)


def tanh(k: Kit, x: Term) -> Term:
    """An odd polynomial near 0; elsewhere 1 - 2 / (exp(2 |x|) + 1), whose error the 1 dwarfs."""
    f = k.format
    a = k.at_most(k.op("abs", x), 10.0 if k.single else 20.0)
    n, shifted = k.near(a, 2.0 * LOG2_E, f.bias)
    power = k.from_bits(k.shl(k.bits(shifted), f.mantissa))
    r = rest(k, a + a, n)
    e = k.poly(r, (1.0, 1.0, *k.pick(EXP_SINGLE, EXP_DOUBLE)))
    far = 1.0 - 2.0 / k.fma(power, e, 1.0)
    z = a * a
    near = k.fma(a * z, k.poly(z, k.pick(TANH_SINGLE, TANH_DOUBLE)), a)
    return k.op("copysign", k.select(a < 0.55, near, far), x)
