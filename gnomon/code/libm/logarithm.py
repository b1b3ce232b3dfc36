"""Logarithms: x = m 2^e with m from sqrt(1/2) to sqrt(2): e is 0 near 1, and nothing cancels."""

from __future__ import annotations

from gnomon.code.libm import tables
from gnomon.code.libm.exponential import LN2_DOUBLE, LN2_SINGLE
from gnomon.code.libm.kit import INF, NAN, Kit
from gnomon.expr.term import Term

ROOT_HALF = 0.7071067811865476
# constants in two parts, the first as long as the format
LOG2_E = (
    (1.44269502162933349609375, 1.9259629911266175e-8),
    (1.4426950408889634, 2.0355273740931033e-17),
)
LOG10_E = (
    (0.4342944920063018798828125, -1.0103050052231683e-8),
    (0.4342944819032518, 1.098319650216765e-17),
)
LOG10_2 = (
    (0.301030009984970092773438, -1.4320988897559699e-8),
    (0.3010299956639812, -2.8037281277851704e-18),
)


def split(k: Kit, x: Term, denormals: bool = True) -> tuple[Term, Term]:
    """(m - 1, e) of a positive finite x."""
    f = k.format
    carrier = 2.0**f.mantissa
    offset: Term | float = carrier + f.bias
    if denormals:
        denormal = x < f.tiny
        x = k.select(denormal, x * carrier, x)
        offset = k.select(denormal, carrier + f.bias + f.mantissa, carrier + f.bias)
    root = k.bits_of(ROOT_HALF)
    i = k.bits(x) - root + (f.bias << f.mantissa)
    m = k.from_bits(k.op("and", i, k.integer((1 << f.mantissa) - 1)) + root)
    # the exponent as a float without a conversion: in the lowest bits of 2^mantissa
    e = k.from_bits(k.op("or", k.lshr(i, f.mantissa), k.bits_of(carrier)))
    return m - 1.0, e - offset


def log_near(k: Kit, f: Term, tail: Term | None = None) -> Term:
    """log(1 + f), plus `tail` where the rounding of the sum is to swallow it."""
    if k.single:
        rest = k.fma(f, k.poly(f, tables.LOG_SINGLE), -0.5)
        return (f * f * rest if tail is None else k.fma(f * f, rest, tail)) + f
    s = f / (f + 2.0)
    z = s * s
    rest = s * (f - z * k.poly(z, tables.LOG_DOUBLE))
    return f - (rest if tail is None else rest - tail)


def log(k: Kit, x: Term) -> Term:
    """The natural logarithm."""
    return edges(k, x, joined(k, *split(k, x)))


def joined(k: Kit, f: Term, e: Term) -> Term:
    """log(1 + f) + e ln 2."""
    high, low = k.pick(LN2_SINGLE, LN2_DOUBLE)
    return k.fma(e, high, log_near(k, f, e * low))


def edges(k: Kit, x: Term, y: Term) -> Term:
    """A logarithm's value `y` for positive finite x; what it is elsewhere."""
    outside = k.select(x.eq(0.0), -INF, NAN)
    return k.select(k(0.0) < x, k.select(x.eq(INF), INF, y), outside)


def log2(k: Kit, x: Term) -> Term:
    """Exact at powers of 2."""
    f, e = split(k, x)
    y = log_near(k, f)
    high, low = k.pick(*LOG2_E)
    return edges(k, x, k.fma(y, high, k.fma(y, low, e)))


def log10(k: Kit, x: Term) -> Term:
    """The logarithm to base 10."""
    f, e = split(k, x)
    y = log_near(k, f)
    (high, low), (high2, low2) = k.pick(*LOG10_E), k.pick(*LOG10_2)
    return edges(k, x, k.fma(e, high2, k.fma(y, high, k.fma(y, low, e * low2))))


def log1p(k: Kit, x: Term) -> Term:
    """The exponent e of 1 + x, then f = (1 + x) 2^-e - 1 = x s + (s - 1), rounded once."""
    f = k.format
    u = x + 1.0
    plain, e = split(k, u, denormals=False)
    s = k.power_near((f.magic + f.bias) - e)
    # far from 0 the 1 does not matter; and s would leave the range of exponents
    exact = k.select(x < 2.0 ** (f.mantissa + 8), k.fma(x, s, s - 1.0), plain)
    return k.op("copysign", edges(k, u, joined(k, exact, e)), x)
