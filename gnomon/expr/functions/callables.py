"""What Python's own functions mean inside a scalar operator: builtins, `math`, NumPy's ufuncs."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon.expr.functions.formula import Operand, Sym, prim, select
from gnomon.expr.functions.scalar import SCALAR, ScalarFn

Rule = Callable[..., Any]  # of symbols and numbers, at least one of them a symbol


def power(a: Operand, b: Operand) -> Operand:
    """`a ** b`; small whole exponents by multiplication, 0.5 by a square root."""
    if not isinstance(b, Sym) and b == 0.5:
        return prim("sqrt", a)
    if isinstance(b, Sym) or not abs(b) <= 16 or b != int(b):
        return prim("pow", a, b)
    if b < 0:
        return 1.0 / power(a, -b)
    result: Operand = 1.0
    square, n = a, int(b)
    while n:
        if n & 1:
            result = square if isinstance(result, float) else result * square
        n >>= 1
        square = square * square if n else square
    return result


def floor_division(a: Operand, b: Operand) -> Sym:
    """`a // b`, toward minus infinity; a zero has the sign of `a / b`."""
    rest = _called("fmod", a, b)
    below = prim("xor", rest < 0, b < 0)
    whole = (a - rest) / b - select(rest != 0, select(below, 1.0, 0.0), 0.0)
    return select(whole == 0, a / b * 0.0, prim("rint", whole))


def remainder(a: Operand, b: Operand) -> Sym:
    """`a % b`, with the sign of b; 0 where b is 0."""
    return _called("mod", a, b)


def _called(name: str, a: Operand, b: Operand) -> Sym:
    """A scalar function as one step, with its own derivatives."""
    tape = next(x.tape for x in (a, b) if isinstance(x, Sym))
    return tape.call(SCALAR[name], a, b)


def _apply(name: str, *args: Operand) -> Any:
    return SCALAR[name](*args)


def _log(x: Operand, base: Operand | None = None) -> Any:
    return _apply("log", x) if base is None else _apply("log", x) / _apply("log", base)


def _fold(name: str, *args: Operand) -> Any:
    return functools.reduce(lambda a, b: _apply(name, a, b), args)


def _integer(x: Sym) -> Sym:
    return prim("trunc", x)


def _identity(x: Sym) -> Sym:
    return x.tape.number(x)


def _truth(x: Sym) -> Sym:
    return x.tape.truth(x)


_MATH = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "fabs": "abs", "lgamma": "gammaln",
}  # fmt: skip
_NUMPY = {
    "absolute": "abs", "deg2rad": "radians", "divide": "div", "equal": "eq", "fabs": "abs",
    "fmax": "maximum", "fmin": "minimum", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne",
    "positive": "identity",
    "rad2deg": "degrees", "remainder": "mod", "subtract": "sub", "true_divide": "div",
}  # fmt: skip
_RULES: dict[Any, Rule] = {
    builtins.abs: functools.partial(_apply, "abs"),
    builtins.bool: _truth,
    builtins.float: _identity,
    builtins.int: _integer,
    builtins.max: functools.partial(_fold, "maximum"),
    builtins.min: functools.partial(_fold, "minimum"),
    builtins.pow: power,
    builtins.round: functools.partial(_apply, "rint"),
    math.log: _log,
    math.pow: power,
    np.clip: functools.partial(_apply, "clip"),
    np.fix: functools.partial(_apply, "fix"),
    np.power: power,
    np.round: functools.partial(_apply, "rint"),
    np.where: select,
}


def is_constant(function: Any) -> bool:
    """Whether a call of `function` with numbers may be carried out once and for all."""
    if isinstance(function, Sym):
        return False
    if isinstance(function, type):
        return issubclass(function, int | float | np.generic)
    return getattr(math, getattr(function, "__name__", ""), None) is function or (
        isinstance(function, np.ufunc) or rule_of(function) is not None
    )


def rule_of(function: Any) -> Rule | None:
    """What a call of `function` becomes, or None where it has no meaning in an operator."""
    if isinstance(function, ScalarFn):
        return function
    try:
        known = _RULES.get(function)
    except TypeError:  # not hashable: no function of ours
        return None
    if known is not None:
        return known
    name = getattr(function, "__name__", "")
    if isinstance(function, np.ufunc):
        return SCALAR.get(_NUMPY.get(name, name))
    if getattr(math, name, None) is function:
        return SCALAR.get(_MATH.get(name, name))
    return None
