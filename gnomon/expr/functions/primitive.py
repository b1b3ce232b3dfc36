"""Primitive functions: the scalar operations that Terms are made of, one row each.

A primitive is either one instruction of every machine, or a transcendental function, which
`gnomon.code.math` writes out in the former for targets that lack it. `numpy` is its meaning.
Half floats never appear here: they are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gnomon.expr.functions import special


class Primitive(NamedTuple):
    """One row: arity, NumPy meaning, whether it gives a bool, whether it only exists in floats."""

    arity: int
    numpy: Callable[..., Any]
    gives_bool: bool = False
    floats_only: bool = False


def _divide(a: Any, b: Any) -> Any:
    """Integers truncate toward zero, x/0 gives 0, INT_MIN/-1 wraps; floats divide."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "f":
        return np.divide(a, b)
    zero = b == 0
    safe = np.where(zero, np.ones_like(b), b)
    quotient = np.floor_divide(a, safe)
    fix = (np.remainder(a, safe) != 0) & ((a < 0) != (safe < 0))
    return np.where(zero, np.zeros_like(a), quotient + fix.astype(a.dtype)).astype(a.dtype)


def _power(a: Any, b: Any) -> Any:
    """Integers count modulo a power of two; 1 / a^n divides as `_divide` does."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "f":
        return np.power(a, b)
    whole = np.power(a, np.maximum(b, 0))
    alone = np.where(a == -1, 1 - 2 * (b & 1), (a == 1).astype(a.dtype))
    return np.where(b < 0, alone, whole).astype(a.dtype)


def convert(value: Any, dtype: np.dtype[Any]) -> Any:
    """An array as `dtype`: floats to integers truncate, saturate at the ends, NaN gives 0."""
    value = np.asarray(value)
    if value.dtype == dtype or dtype.kind not in "iu" or value.dtype.kind in "iub":
        return value.astype(dtype, copy=False)
    info = np.iinfo(dtype)
    wide = np.nan_to_num(value.astype(np.longdouble), nan=0.0, posinf=info.max, neginf=info.min)
    return np.clip(np.trunc(wide), info.min, info.max).astype(dtype)


def _bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Shifts by the width of the type or more give 0, as they never do in hardware."""

    def shift(a: Any, b: Any) -> Any:
        a = np.asarray(a)
        unsigned = a.view(np.dtype(f"u{a.dtype.itemsize}"))
        return function(unsigned, np.asarray(b).astype(unsigned.dtype)).view(a.dtype)

    return shift


def _fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c rounded once: float32 by float64, float64 by its product in two parts."""
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    if a.dtype == np.float32:
        wide = np.multiply(a, b, dtype=np.float64) + np.asarray(c, np.float64)
        return wide.astype(np.float32)
    product = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    low = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total = product + c
    back = total - product
    exact = total + (((product - (total - back)) + (c - back)) + low)
    plain = (np.asarray(a, np.longdouble) * b + c).astype(a.dtype)
    return np.where(np.isfinite(exact) & (exact != 0), exact, plain)  # which has the zero's sign


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = x * 134217729.0  # 2^27 + 1: Veltkamp's splitting
    high = scaled - (scaled - x)
    return high, x - high


def _scalb(x: Any, n: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.ldexp(x, np.nan_to_num(n).astype(np.int32))


PRIMITIVES: dict[str, Primitive] = {
    "add": Primitive(2, np.add),
    "sub": Primitive(2, np.subtract),
    "mul": Primitive(2, np.multiply),
    "div": Primitive(2, _divide),
    "neg": Primitive(1, np.negative),
    "abs": Primitive(1, np.abs),
    "min": Primitive(2, np.minimum),  # a NaN on either side gives NaN
    "max": Primitive(2, np.maximum),
    "fma": Primitive(3, _fma, floats_only=True),
    "idiv": Primitive(2, np.floor_divide),  # index arithmetic: operands >= 0, divisor > 0
    "imod": Primitive(2, np.remainder),
    "lt": Primitive(2, np.less, gives_bool=True),
    "le": Primitive(2, np.less_equal, gives_bool=True),
    "eq": Primitive(2, np.equal, gives_bool=True),
    "ne": Primitive(2, np.not_equal, gives_bool=True),
    "and": Primitive(2, np.bitwise_and),
    "or": Primitive(2, np.bitwise_or),
    "xor": Primitive(2, np.bitwise_xor),
    "not": Primitive(1, np.invert),
    "shl": Primitive(2, _bits(np.left_shift)),
    "lshr": Primitive(2, _bits(np.right_shift)),  # logical: zeros come in
    "shr": Primitive(2, np.right_shift),  # of signed integers the sign comes in
    "select": Primitive(3, np.where),
    "rare": Primitive(3, np.where),  # a select whose condition seldom holds
    "fmod": Primitive(2, np.fmod, floats_only=True),  # exact, with the sign of a
    "sqrt": Primitive(1, np.sqrt, floats_only=True),
    "floor": Primitive(1, np.floor, floats_only=True),
    "ceil": Primitive(1, np.ceil, floats_only=True),
    "trunc": Primitive(1, np.trunc, floats_only=True),
    "rint": Primitive(1, np.rint, floats_only=True),  # ties to even
    "copysign": Primitive(2, np.copysign, floats_only=True),
    "scalb": Primitive(2, _scalb, floats_only=True),  # a * 2^b, b integral and |b| < 1.5 bias
    "exp": Primitive(1, np.exp, floats_only=True),
    "exp2": Primitive(1, np.exp2, floats_only=True),
    "expm1": Primitive(1, np.expm1, floats_only=True),
    "log": Primitive(1, np.log, floats_only=True),
    "log2": Primitive(1, np.log2, floats_only=True),
    "log10": Primitive(1, np.log10, floats_only=True),
    "log1p": Primitive(1, np.log1p, floats_only=True),
    "pow": Primitive(2, _power, floats_only=True),  # of integers as well: see formula.WHOLE
    "cbrt": Primitive(1, np.cbrt, floats_only=True),
    "sin": Primitive(1, np.sin, floats_only=True),
    "cos": Primitive(1, np.cos, floats_only=True),
    "sinpi": Primitive(1, special.sinpi, floats_only=True),
    "cospi": Primitive(1, special.cospi, floats_only=True),
    "tan": Primitive(1, np.tan, floats_only=True),
    "arcsin": Primitive(1, np.arcsin, floats_only=True),
    "arccos": Primitive(1, np.arccos, floats_only=True),
    "arctan": Primitive(1, np.arctan, floats_only=True),
    "arctan2": Primitive(2, np.arctan2, floats_only=True),
    "sinh": Primitive(1, np.sinh, floats_only=True),
    "cosh": Primitive(1, np.cosh, floats_only=True),
    "tanh": Primitive(1, np.tanh, floats_only=True),
    "erf": Primitive(1, special.erf, floats_only=True),
    "erfinv": Primitive(1, special.erfinv, floats_only=True),
    "gelu": Primitive(1, special.gelu, floats_only=True),
    "gelu_slope": Primitive(1, special.gelu_slope, floats_only=True),
    "gamma": Primitive(1, special.gamma, floats_only=True),
    "gammaln": Primitive(1, special.gammaln, floats_only=True),
    "digamma": Primitive(1, special.digamma, floats_only=True),
    "trigamma": Primitive(1, special.trigamma, floats_only=True),
}

FOLD_INT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "idiv": lambda a, b: a // b if b else 0,  # where there are no elements
    "imod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
