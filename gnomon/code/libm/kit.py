"""What the functions are written with: the arithmetic of one floating format, as Terms.

No code here may be compiled with reassociation ('fast math'): adding and subtracting `magic` rounds
to an integer, and the low parts of split constants only work in the order they are written in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr.term import Arena, Number, Term
from gnomon.ground.record import record

INF, NAN = math.inf, math.nan
LONG = 10  # coefficients of a polynomial whose steps had better not wait for each other


@record()
class Format:
    """A floating format: stored bits of the mantissa, bias of the exponent, integer type."""

    dtype: DType
    integer: DType
    mantissa: int
    bias: int

    @property
    def magic(self) -> float:
        """Added to a small number it leaves that, rounded to an integer, in the lowest bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


SINGLE = Format(dt.float32, dt.int32, 23, 127)
DOUBLE = Format(dt.float64, dt.int64, 52, 1023)
FORMATS = {dt.float32: SINGLE, dt.float64: DOUBLE}


class Kit:
    """Builds Terms of one format; `has` names the functions that the target offers itself."""

    def __init__(self, arena: Arena, dtype: DType, has: frozenset[str] = frozenset()) -> None:
        self.arena, self.format, self.has = arena, FORMATS[dtype], has
        self.single = dtype is dt.float32

    def __call__(self, value: Number) -> Term:
        """A constant of the format."""
        return self.arena.const(float(value), self.format.dtype)

    def integer(self, value: Number) -> Term:
        """A constant of the integer type of the format's size."""
        return self.arena.const(value, self.format.integer)

    def op(self, name: str, *args: Term | Number) -> Term:
        """A primitive; numbers take the format's dtype."""
        return self.arena.op(name, *[a if isinstance(a, Term) else self(a) for a in args])

    def fma(self, a: Term | Number, b: Term | Number, c: Term | Number) -> Term:
        """a * b + c, rounded once."""
        return self.op("fma", a, b, c)

    def fnma(self, a: Term | Number, b: Term, c: Term | Number) -> Term:
        """c - a * b, rounded once."""
        return self.op("fma", -a, b, c)

    def two_sum(self, a: Term, b: Term) -> tuple[Term, Term]:
        """a + b, and exactly what its rounding left out (Knuth)."""
        total = a + b
        other = total - a
        return total, (a - (total - other)) + (b - other)

    def fast_two_sum(self, a: Term, b: Term) -> tuple[Term, Term]:
        """The same where |a| >= |b| or a is 0 (Dekker)."""
        total = a + b
        return total, (a - total) + b

    def two_product(self, a: Term, b: Term | float) -> tuple[Term, Term]:
        """a * b, and exactly what its rounding left out."""
        product = a * b
        return product, self.fma(a, b, -product)

    def poly(self, x: Term, coefficients: Sequence[Number]) -> Term:
        """The polynomial with these coefficients, lowest first, by Horner's rule.

        Many are two chains of steps side by side: the even powers, and the odd ones.
        """
        if len(coefficients) >= LONG:
            z = x * x
            return self.fma(self.poly(z, coefficients[1::2]), x, self.poly(z, coefficients[::2]))
        value = self(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.fma(value, x, c)
        return value

    def odd(self, x: Term, single: Sequence[Number], double: Sequence[Number]) -> Term:
        """x + x^3 p(x^2): an odd function beside x."""
        z = x * x
        return self.fma(x * z, self.poly(z, self.pick(single, double)), x)

    def select(self, cond: Term, yes: Term | Number, no: Term | Number) -> Term:
        """`yes` where `cond` holds, else `no`."""
        return self.op("select", cond, yes, no)

    def at_most(self, x: Term, high: Number) -> Term:
        """The lesser of both; NaN stays NaN (one instruction: the order of operands matters)."""
        return self.select(self(high) < x, high, x)

    def at_least(self, x: Term, low: Number) -> Term:
        """The greater of both; NaN stays NaN."""
        return self.select(x < low, low, x)

    def bits(self, x: Term) -> Term:
        """The bits of a float as an integer."""
        return self.arena.bitcast(x, self.format.integer)

    def from_bits(self, i: Term) -> Term:
        """The float that has these bits."""
        return self.arena.bitcast(i, self.format.dtype)

    def bits_of(self, value: float) -> Term:
        """The bits of a constant, as an integer constant."""
        f = self.format
        return self.integer(int(f.dtype.numpy.type(value).view(f.integer.numpy)))

    def shl(self, i: Term, count: int) -> Term:
        """`i` shifted up."""
        return self.op("shl", i, self.integer(count))

    def lshr(self, i: Term, count: int) -> Term:
        """`i` shifted down; zeros come in."""
        return self.op("lshr", i, self.integer(count))

    def near(self, x: Term, scale: float, offset: float = 0.0) -> tuple[Term, Term]:
        """x * scale rounded to an integer, and a float with that + `offset` in its lowest bits."""
        magic = self.format.magic + offset
        shifted = x + magic if scale == 1.0 else self.fma(x, scale, magic)
        return shifted - magic, shifted

    def power_of_two(self, n: Term) -> Term:
        """2^n for an integral float n, where that is a normal number."""
        f = self.format
        return self.power_near(n + (f.magic + f.bias))

    def power_near(self, shifted: Term) -> Term:
        """2^n of the float that has n + bias in its lowest bits, as `near` gives it."""
        return self.from_bits(self.shl(self.bits(shifted), self.format.mantissa))

    def scalb(self, x: Term, n: Term) -> Term:
        """x * 2^n for integral n; denormal and infinite results are right."""
        return self.op("scalb", x, n) if "scalb" in self.has else scalb(self, x, n)

    def rare(self, cond: Term, slow: Term, fast: Term) -> Term:
        """`slow` where `cond` holds, which is seldom, else `fast`; a target may branch."""
        return self.op("rare" if "rare" in self.has else "select", cond, slow, fast)

    def rest(self, high: float, low: float) -> float:
        """What the format leaves out of the number high + low."""
        return float(high - float(np.float32(high)) + low) if self.single else low

    def pick(self, single: Sequence[Number], double: Sequence[Number]) -> Sequence[Number]:
        """The table of this format."""
        return single if self.single else double


def scalb(k: Kit, x: Term, n: Term) -> Term:
    """In two factors, the second 2^64 or 2^-64 (double: 2^512): only its product can be inexact."""
    f = k.format
    half = (f.bias + 1) // 2
    negative = n < 0
    low = k.shl(k.bits(n + f.magic), f.mantissa)
    bias = k.select(
        negative, k.integer(f.bias + half << f.mantissa), k.integer(f.bias - half << f.mantissa)
    )
    factor = k.from_bits(low + bias)
    return x * factor * k.select(negative, 2.0**-half, 2.0**half)
