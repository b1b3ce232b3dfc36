"""sin, cos, tan and their inverses.

Arguments are reduced by multiples of pi in three parts (Cody and Waite), which fused multiply-adds
make exact up to `FAR`. Beyond, x / (2 pi) is computed modulo 1 by pieces of 1 / (2 pi) (Payne and
Hanek).
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.code.libm import tables
from gnomon.code.libm.kit import INF, Kit
from gnomon.expr.term import Term

PI = 3.141592653589793
PI_LOW = 1.2246467991473532e-16
# parts above 0: -0.0 less 0 times each of them is -0.0
PI_SINGLE = (3.141592502593994, 1.5099578831723193e-07, 1.078060505991553e-14)
PI_DOUBLE = (PI, 1.224646799147353e-16, 2.1657133478438278e-32)
FAR = (2.0**16, 2.0**28)
PIECES = 5  # of the table for float64, from the first that counts


def sin(k: Kit, x: Term) -> Term:
    """By x = n pi / 2 + r."""
    return quadrant(k, x, 0)


def cos(k: Kit, x: Term) -> Term:
    """As `sin`, one quadrant on."""
    return quadrant(k, x, 1)


def quadrant(k: Kit, x: Term, shift: int) -> Term:
    """sin(x + shift pi / 2)."""
    n, shifted = k.near(x, 2.0 / PI)
    fast = wave(k, reduced(k, x, n * 0.5), k.bits(shifted) + shift)
    r, _, n = far_reduced(k, x)
    return k.rare(far(k, x), wave(k, r, n + shift), fast)


def wave(k: Kit, r: Term, n: Term) -> Term:
    """sin(r + n pi / 2) for |r| <= pi / 4, by the two lowest bits of n; 0 keeps its sign."""
    sine = k.op("copysign", k.odd(r, tables.SIN_SINGLE, tables.SIN_DOUBLE), r)
    z = r * r
    rest = k.fma(z, k.poly(z, k.pick(tables.COS_SINGLE, tables.COS_DOUBLE)), -0.5)
    even = k.op("and", n, k.integer(1)).eq(0)
    value = k.select(even, sine, k.fma(z, rest, 1.0))
    sign = k.shl(k.lshr(n, 1), 8 * k.format.dtype.size - 1)
    return k.from_bits(k.op("xor", k.bits(value), sign))


def tan(k: Kit, x: Term) -> Term:
    """tan(r), or -1 / tan(r) where the multiple of pi / 2 is odd."""
    n, shifted = k.near(x, 2.0 / PI)
    fast = tangent(k, *twice_reduced(k, x, n * 0.5), k.bits(shifted))
    return k.rare(far(k, x), tangent(k, *far_reduced(k, x)), fast)


def sinpi(k: Kit, x: Term) -> Term:
    """sin(pi x), whose argument is reduced exactly."""
    n = k.op("rint", x)
    odd = n - 2.0 * k.op("floor", n * 0.5)
    r = half_turns(k, x - n)
    flip = k.shl(k.bits(odd + k.format.magic), 8 * k.format.dtype.size - 1)
    sign = k.from_bits(k.op("xor", k.bits(r), flip))
    return k.op("copysign", k.odd(r, tables.SINPI_SINGLE, tables.SINPI_DOUBLE), sign)


def cospi(k: Kit, x: Term) -> Term:
    """cos(pi x) = sin(pi (1/2 - |x|)) for x in [-1, 1]."""
    inside = x - 2.0 * k.op("rint", x * 0.5)
    r = half_turns(k, 0.5 - k.op("abs", inside))
    return k.odd(r, tables.SINPI_SINGLE, tables.SINPI_DOUBLE)


def half_turns(k: Kit, v: Term) -> Term:
    """pi v."""
    return k.fma(v, PI, v * PI_LOW) if not k.single else v * PI


def far(k: Kit, x: Term) -> Term:
    """Whether x is too large for `reduced`."""
    return k(FAR[not k.single]) <= k.op("abs", x)


def reduced(k: Kit, x: Term, n: Term) -> Term:
    """x - n pi."""
    for part in k.pick(PI_SINGLE, PI_DOUBLE):
        x = k.fnma(part, n, x)
    return x


def twice_reduced(k: Kit, x: Term, n: Term) -> tuple[Term, Term]:
    """x - n pi, and what its rounding leaves out."""
    high, middle, low = k.pick(PI_SINGLE, PI_DOUBLE)
    x = k.fnma(high, n, x)
    product = n * middle
    r, left = k.two_sum(x, -product)
    return r, k.fnma(low, n, left - k.fma(n, middle, -product))


def tangent(k: Kit, r: Term, low: Term, n: Term) -> Term:
    """tan(r + low + n pi / 2) for |r| <= pi / 4."""
    z = r * r
    p = k.poly(z, k.pick(tables.TAN_SINGLE, tables.TAN_DOUBLE))
    t = r + k.fma(r * z, p, k.fma(low, z, low))
    t = k.op("copysign", t, r)
    even = k.op("and", n, k.integer(1)).eq(0)
    return k.select(even, t, -1.0 / t)


def wide(k: Kit) -> Kit:
    """The kit for float64."""
    return Kit(k.arena, dt.float64, k.has)


def narrow(k: Kit, x: Term) -> Term:
    """A float64 in the format of `k`."""
    return k.arena.cast(x, k.format.dtype)


def low_bits(k: Kit, shifted: Term) -> Term:
    """The lowest bits of a float64, as an integer of the format of `k`."""
    return k.arena.cast(wide(k).bits(shifted), k.format.integer)


def far_reduced(k: Kit, x: Term) -> tuple[Term, Term, Term]:
    """r, what its rounding leaves out, and n, with x = r + n pi / 2, for any x."""
    d = wide(k)
    high, low = fraction(k, x)
    turns = high * 4.0
    n, shifted = d.near(turns, 1.0)
    share = (turns - n) * 0.5
    product = share * PI
    rest = d.fma(share, PI, -product) + d.fma(share, PI_LOW, low * (2.0 * PI))
    exact = product + rest
    r = narrow(k, exact)
    left = exact - k.arena.cast(r, dt.float64) if k.single else rest - (exact - product)
    return r, narrow(k, left), low_bits(k, shifted)


def fraction(k: Kit, x: Term) -> tuple[Term, Term]:
    """x / (2 pi) modulo 1, from -1/2 to 1/2, in two parts of float64, for any finite x."""
    d = wide(k)
    total, low = d(0.0), d(0.0)
    for part in products(d, x):
        total, left = d.two_sum(total, modulo_one(d, part))
        total, low = modulo_one(d, total), low + left
    return total, low


def products(d: Kit, x: Term) -> list[Term]:
    """What adds up to x / (2 pi), but for whole turns."""
    if x.dtype is dt.float32:
        x = d.arena.cast(x, dt.float64)
        return [x * piece for piece in tables.TURN_SINGLE]
    scaled, parts = x * 2.0**-256, []
    for piece in window(d, x):
        product = scaled * piece
        parts += [product, d.fma(scaled, piece, -product)]
    return parts


def modulo_one(k: Kit, x: Term) -> Term:
    """The distance to the nearest integer."""
    return x - k.op("rint", x)


def window(k: Kit, x: Term) -> list[Term]:
    """The pieces of 1 / (2 pi) that matter for x: those before give whole turns only."""
    exponent = k.lshr(k.bits(k.op("abs", x)), k.format.mantissa)
    e = k.from_bits(k.op("or", exponent, k.bits_of(2.0**52))) - (2.0**52 + 1023)
    skip = k.op("floor", k.fma(e, 1.0 / 53.0, -51.5 / 53.0))
    pieces: list[Term] = [k(c) for c in tables.TURN_DOUBLE]
    for step in (16, 8, 4, 2, 1):
        beyond = k(float(step)) <= skip
        skip = k.select(beyond, skip - float(step), skip)
        pieces = chosen(k, beyond, pieces, step)
    return pieces


def chosen(k: Kit, beyond: Term, pieces: Sequence[Term], step: int) -> list[Term]:
    """The pieces from number `step` on where `beyond`, else from the first."""
    padded = [*pieces, *[k(0.0)] * step]
    return [k.select(beyond, padded[i + step], padded[i]) for i in range(PIECES + step - 1)]


def arctan(k: Kit, x: Term) -> Term:
    """As `arctan2` with 1."""
    return arctan2(k, x, k(1.0), positive=True)


def arctan2(k: Kit, y: Term, x: Term, positive: bool = False) -> Term:
    """A polynomial on |t| <= tan(pi / 8); beyond, pi / 4 and pi / 2 are split off.

    `positive` says that x is 1, and leaves out what only other points need.
    """
    a, b = k.op("abs", y), k.op("abs", x)
    if not positive:
        a, b = tamed(k, a, b)
    low = a <= b * 0.41421356237309503
    high = b <= a * 0.41421356237309503
    above = k.select(low, a, k.select(high, -b, a - b))
    below = k.select(low, b, k.select(high, a, a + b))
    t = above / below
    base = k.select(low, 0.0, k.select(high, PI / 2, PI / 4))
    rest = k.select(
        low, 0.0, k.select(high, k.rest(PI / 2, PI_LOW / 2), k.rest(PI / 4, PI_LOW / 4))
    )
    z = t * t
    p = k.poly(z, k.pick(tables.ATAN_SINGLE, tables.ATAN_DOUBLE))
    angle = base + (t + k.fma(t * z, p, rest))
    if positive:
        return k.op("copysign", angle, y)
    angle = k.select(below.eq(0.0), 0.0, angle)
    left = k.op("copysign", k(1.0), x) < 0.0
    angle = k.select(left, PI - (angle - k.rest(PI, PI_LOW)), angle)
    return k.op("copysign", angle, y)


def tamed(k: Kit, a: Term, b: Term) -> tuple[Term, Term]:
    """a and b scaled so that their sum is finite; two infinities become 1 and 1."""
    both = a.eq(INF) & b.eq(INF)
    a, b = k.select(both, 1.0, a), k.select(both, 1.0, b)
    large = 2.0 ** (k.format.bias - 2)
    scale = k.select(k(large) < k.op("max", a, b), 0.25, 1.0)
    return a * scale, b * scale


def arcsin(k: Kit, x: Term) -> Term:
    """A polynomial to 0.6; beyond, pi / 2 - 2 arcsin(sqrt((1 - |x|) / 2))."""
    a = k.op("abs", x)
    near = a <= 0.6
    z = k.select(near, a * a, 0.5 - 0.5 * a)
    s = k.select(near, a, k.op("sqrt", z))
    angle = half_arcsin(k, s, z)
    low = k.rest(PI / 2, PI_LOW / 2)
    return k.op("copysign", k.select(near, angle, PI / 2 - (angle + angle - low)), x)


def arccos(k: Kit, x: Term) -> Term:
    """As `arcsin`; near 1 nothing is subtracted."""
    a = k.op("abs", x)
    near = a <= 0.6
    z = k.select(near, a * a, 0.5 - 0.5 * a)
    s = k.select(near, x, k.op("sqrt", z))
    angle = half_arcsin(k, s, z)
    double = angle + angle
    beyond = k.select(x < 0.0, PI - (double - k.rest(PI, PI_LOW)), double)
    return k.select(near, PI / 2 - (angle - k.rest(PI / 2, PI_LOW / 2)), beyond)


def half_arcsin(k: Kit, s: Term, z: Term) -> Term:
    """arcsin(s) for |s| <= 0.6 with z = s^2."""
    return k.fma(s * z, k.poly(z, k.pick(tables.ASIN_SINGLE, tables.ASIN_DOUBLE)), s)
