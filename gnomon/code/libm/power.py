"""Powers: x^y as 2^(y log2 x), and the cube root.

The logarithm has to be known to some 12 bits more than the format: float32 computes in float64,
float64 in sums of two numbers.
"""

from __future__ import annotations

from gnomon import dtype as dt
from gnomon.code.libm import tables
from gnomon.code.libm.exponential import LN2, exp_rest
from gnomon.code.libm.kit import INF, NAN, Kit
from gnomon.code.libm.logarithm import LOG2_E, split
from gnomon.expr.term import Term

TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
Pair = tuple[Term, Term]  # the sum of both, the second below the first's last digit


def pow(k: Kit, x: Term, y: Term) -> Term:
    """x^y with the conventions of C for 0, 1, infinities and negative x."""
    a = k.op("abs", x)
    value = single_power(k, a, y) if k.single else double_power(k, a, y)
    whole = k.op("rint", y).eq(y)
    half = y * 0.5
    odd = whole & k.op("ne", k.op("rint", half), half)
    negative = k.op("copysign", k(1.0), x) < 0.0
    value = k.select(negative & odd, -value, value)
    invalid = negative & ~whole & (k(-INF) < x) & (x < 0.0)
    value = k.select(invalid, NAN, value)
    turning = x.eq(-1.0) & k.op("abs", y).eq(INF)
    return k.select(y.eq(0.0) | x.eq(1.0) | turning, 1.0, value)


def single_power(k: Kit, a: Term, y: Term) -> Term:
    """a^y for a >= 0, through float64."""
    d = Kit(k.arena, dt.float64, k.has)
    wide = k.arena.cast(a, dt.float64)
    f, e = split(d, wide, denormals=False)
    near = d.fma(f * f, d.fma(f, d.poly(f, tables.LOG_SHORT), -0.5), f)
    t = k.arena.cast(y, dt.float64) * log_edges(d, wide, d.fma(near, LOG2_E[1][0], e))
    t = d.at_most(d.at_least(t, -200.0), 200.0)
    n, _ = d.near(t, 1.0)
    p = d.poly((t - n) * LN2, (1.0, 1.0, *tables.EXP_SINGLE))
    return k.arena.cast(p * d.power_of_two(n), dt.float32)


def log_edges(k: Kit, a: Term, value: Term) -> Term:
    """A logarithm of a >= 0 at 0, infinity and NaN."""
    return k.select(a.eq(0.0), -INF, k.select(a < INF, value, a))


def double_power(k: Kit, a: Term, y: Term) -> Term:
    """a^y for a >= 0."""
    high, low = long_log2(k, a)
    product, left = k.two_product(y, log_edges(k, a, high))
    t = k.at_most(k.at_least(product, -1100.0), 1100.0)
    inside = k.op("abs", product) < 1100.0
    left = k.select(inside, k.fma(y, low, left), 0.0)
    n, _ = k.near(t, 1.0)
    return k.scalb(exp_rest(k, ((t - n) + left) * LN2), n)


def long_log2(k: Kit, a: Term) -> Pair:
    """log2(a) to about 2^-64 of its size."""
    f, e = split(k, a)
    high, low = long_log1p(k, f)
    product, left = k.two_product(high, LOG2_E[1][0])
    left = k.fma(low, LOG2_E[1][0], k.fma(high, LOG2_E[1][1], left))
    total, rest = k.fast_two_sum(e, product)
    return total, rest + left


def long_log1p(k: Kit, f: Term) -> Pair:
    """log(1 + f) = 2 s + s^3 (2/3 + z p(z)) with s = f / (2 + f), z = s^2, in pairs."""
    d, d_low = k.fast_two_sum(k(2.0), f)
    inverse = 1.0 / d
    s = f * inverse
    s_low = (k.fnma(s, d, f) - s * d_low) * inverse
    z, z_low = k.two_product(s, s)
    z_low = k.fma(s + s, s_low, z_low)
    cube, cube_low = k.two_product(s, z)
    cube_low = k.fma(s, z_low, k.fma(s_low, z, cube_low))
    q, q_low = k.fast_two_sum(k(TWO_THIRDS[0]), z * k.poly(z, tables.LOG_TAIL))
    q_low = q_low + TWO_THIRDS[1]
    v, v_low = k.two_product(cube, q)
    v_low = k.fma(cube, q_low, k.fma(cube_low, q, v_low))
    total, rest = k.fast_two_sum(s + s, v)
    return total, rest + (s_low + s_low + v_low)


def cbrt(k: Kit, x: Term) -> Term:
    """x = m 2^(3 n) with m from 0.35 to 2.9: a polynomial, then one step of Halley's iteration."""
    a = k.op("abs", x)
    f, e = split(k, a)
    n, _ = k.near(e, 1.0 / 3.0)
    left = k.fnma(3.0, n, e)
    up, down = k(0.5) < left, left < -0.5
    m = (f + 1.0) * k.select(up, 2.0, k.select(down, 0.5, 1.0))
    root = k.select(up, 2.0 ** (1 / 3), k.select(down, 2.0 ** (-1 / 3), 1.0))
    y = k.poly(f, k.pick(tables.CBRT_SINGLE, tables.CBRT_DOUBLE)) * root
    square = y * y
    off = k.fma(square, y, -m)
    y = y - y * (off / k.fma(square + square, y, m))
    value = k.op("copysign", y * k.power_of_two(n), x)
    return k.select((k(0.0) < a) & (a < INF), value, x)
