"""Logarithms: x = m 2^e with m from sqrt(1/2) to sqrt(2): e is 0 near 1, and nothing cancels."""

from __future__ import annotations

from gnomon.code.libm.exponential import LN2_DOUBLE, LN2_SINGLE
from gnomon.code.libm.kit import INF, NAN, Kit
from gnomon.expr.term import Term

ROOT_HALF = 0.7071067811865476

# (log(1 + f) - f + f^2 / 2) / f^3
LOG_SINGLE = (
    0.33333331, -0.25000823, 0.2000123, -0.16623339, 0.14201680, -0.13160300, 0.12762193,
    -0.07634936,
)  # fmt: skip
# (2 atanh(s) - 2 s) / s^3 in s^2, s = f / (2 + f)
LOG_DOUBLE = (
    0.6666666666666734, 0.3999999999941399, 0.28571428742558697, 0.22222198554030942,
    0.18183565399648743, 0.1531402118952703, 0.14796261606348485,
)  # fmt: skip


def split(k: Kit, x: Term) -> tuple[Term, Term]:
    """(m - 1, e) of a positive finite x, denormal ones too."""
    f = k.format
    denormal = x < f.tiny
    x = k.select(denormal, x * 2.0**f.mantissa, x)
    root = k.bits_of(ROOT_HALF)
    i = k.bits(x) - root + (f.bias << f.mantissa)
    m = k.from_bits(k.op("and", i, k.integer((1 << f.mantissa) - 1)) + root)
    # the exponent as a float without a conversion: in the lowest bits of 2^mantissa
    carrier = 2.0**f.mantissa
    e = k.from_bits(k.op("or", k.lshr(i, f.mantissa), k.bits_of(carrier)))
    offset = k.select(denormal, carrier + f.bias + f.mantissa, carrier + f.bias)
    return m - 1.0, e - offset


def log(k: Kit, x: Term) -> Term:
    """The natural logarithm."""
    f, e = split(k, x)
    high, low = k.pick(LN2_SINGLE, LN2_DOUBLE)
    if k.single:
        tail = k.fma(f, k.poly(f, LOG_SINGLE), -0.5)
        near = k.fma(f * f, tail, e * low) + f
    else:
        s = f / (f + 2.0)
        z = s * s
        near = f - k.fnma(e, k(low), s * (f - z * k.poly(z, LOG_DOUBLE)))
    return edges(k, x, k.fma(e, high, near))


def edges(k: Kit, x: Term, y: Term) -> Term:
    """A logarithm's value `y` for positive finite x; what it is elsewhere."""
    outside = k.select(x.eq(0.0), -INF, NAN)
    return k.select(k(0.0) < x, k.select(x.eq(INF), INF, y), outside)
