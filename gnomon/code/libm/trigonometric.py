"""sin, cos, tan and their inverses.

Arguments are reduced by multiples of pi in three parts (Cody and Waite), which fused multiply-adds make
exact up to `FAR`. Beyond, x / (2 pi) is computed modulo 1 by pieces of 1 / (2 pi) (Payne and Hanek).
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.code.libm import tables
from gnomon.code.libm.kit import INF, Kit
from gnomon.expr.term import Term

PI = 3.141592653589793
PI_LOW = 1.2246467991473532e-16
PI_SINGLE = (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15)
PI_DOUBLE = (PI, PI_LOW, -2.9947698097183397e-33)
FAR = (2.0**17, 2.0**28)
PIECES = 5  # of the table for float64, from the first that counts


def sin(k: Kit, x: Term) -> Term:
    """(-1)^n sin(r) with x = n pi + r."""
    n, shifted = k.near(x, 1.0 / PI)
    fast = signed_sine(k, reduced(k, x, n), k.bits(shifted))
    turns = fraction(k, x) * 2.0
    slow = signed_sine(k, *far_reduced(k, turns, turns))
    return k.rare(far(k, x), slow, fast)


def cos(k: Kit, x: Term) -> Term:
    """-(-1)^n sin(r) with x = (n + 1/2) pi + r."""
    n, shifted = k.near(k.fma(x, 1.0 / PI, -0.5), 1.0)
    fast = -signed_sine(k, reduced(k, x, n + 0.5), k.bits(shifted))
    turns = fraction(k, x) * 2.0
    slow = signed_sine(k, *far_reduced(k, turns + 0.5, turns))
    return k.rare(far(k, x), slow, fast)


def tan(k: Kit, x: Term) -> Term:
    """tan(r), or -1 / tan(r) where the multiple of pi / 2 is odd."""
    n, shifted = k.near(x, 2.0 / PI)
    fast = tangent(k, reduced(k, x, n * 0.5), k.bits(shifted))
    turns = fraction(k, x) * 4.0
    d = wide(k)
    n, shifted = d.near(turns, 1.0)
    slow = tangent(k, narrow(k, half_turns(d, (turns - n) * 0.5)), low_bits(k, shifted))
    return k.rare(far(k, x), slow, fast)


def sinpi(k: Kit, x: Term) -> Term:
    """sin(pi x), whose argument is reduced exactly."""
    n = k.op("rint", x)
    odd = n - 2.0 * k.op("floor", n * 0.5)
    return signed_sine(k, half_turns(k, x - n), k.bits(odd + k.format.magic))


def cospi(k: Kit, x: Term) -> Term:
    """cos(pi x) = sin(pi (1/2 - |x|)) for x in [-1, 1]."""
    inside = x - 2.0 * k.op("rint", x * 0.5)
    return k.odd(half_turns(k, 0.5 - k.op("abs", inside)), tables.SIN_SINGLE, tables.SIN_DOUBLE)


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


def signed_sine(k: Kit, r: Term, n: Term) -> Term:
    """(-1)^n sin(r) for |r| <= pi / 2, of an n whose lowest bit counts; 0 keeps its sign."""
    flip = k.shl(n, 8 * k.format.dtype.size - 1)
    sign = k.from_bits(k.op("xor", k.bits(r), flip))
    return k.op("copysign", k.odd(r, tables.SIN_SINGLE, tables.SIN_DOUBLE), sign)


def tangent(k: Kit, r: Term, n: Term) -> Term:
    """tan(r + n pi / 2) for |r| <= pi / 4."""
    t = k.odd(r, tables.TAN_SINGLE, tables.TAN_DOUBLE)
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


def far_reduced(k: Kit, whole: Term, turns: Term) -> tuple[Term, Term]:
    """r and n with (n + r / pi) congruent to `whole` half turns; `turns` holds the exact fraction."""
    d = wide(k)
    n, shifted = d.near(whole, 1.0)
    offset = (turns - n) if whole is turns else (turns - n) + 0.5
    return narrow(k, half_turns(d, offset)), low_bits(k, shifted)


def fraction(k: Kit, x: Term) -> Term:
    """x / (2 pi) modulo 1, from -1/2 to 1/2, in float64, for any finite x.

    From the most significant piece down, so that what cancels cancels exactly.
    """
    d = wide(k)
    total = d(0.0)
    if k.single:
        x = k.arena.cast(x, dt.float64)
        for piece in tables.TURN_SINGLE:
            total = modulo_one(d, total + modulo_one(d, x * piece))
        return total
    scaled = x * 2.0**-128
    for chosen in window(d, x):
        product = scaled * chosen
        below = d.fma(scaled, chosen, -product)
        for part in (product, below):
            total = modulo_one(d, total + modulo_one(d, part))
    return total


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
    rest = k.select(low, 0.0, k.select(high, k.rest(PI / 2, PI_LOW / 2), k.rest(PI / 4, PI_LOW / 4)))
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
    """A polynomial to 1/2; beyond, pi / 2 - 2 arcsin(sqrt((1 - |x|) / 2))."""
    a = k.op("abs", x)
    near = a <= 0.5
    z = k.select(near, a * a, 0.5 - 0.5 * a)
    s = k.select(near, a, k.op("sqrt", z))
    angle = half_arcsin(k, s, z)
    low = k.rest(PI / 2, PI_LOW / 2)
    return k.op("copysign", k.select(near, angle, PI / 2 - (angle + angle - low)), x)


def arccos(k: Kit, x: Term) -> Term:
    """As `arcsin`; near 1 nothing is subtracted."""
    a = k.op("abs", x)
    near = a <= 0.5
    z = k.select(near, a * a, 0.5 - 0.5 * a)
    s = k.select(near, x, k.op("sqrt", z))
    angle = half_arcsin(k, s, z)
    double = angle + angle
    beyond = k.select(x < 0.0, PI - (double - k.rest(PI, PI_LOW)), double)
    return k.select(near, PI / 2 - (angle - k.rest(PI / 2, PI_LOW / 2)), beyond)


def half_arcsin(k: Kit, s: Term, z: Term) -> Term:
    """arcsin(s) for |s| <= 1/2 with z = s^2."""
    return k.fma(s * z, k.poly(z, k.pick(tables.ASIN_SINGLE, tables.ASIN_DOUBLE)), s)
