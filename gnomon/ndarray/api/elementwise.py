"""Functions of two arrays, or of an array and a number on either side: `nd.maximum(x, 0)`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gnomon.base import power_of_numbers
from gnomon.ndarray.api.arithmetic import combine, is_number, of_two
from gnomon.ndarray.core.array import Array

_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "mod": operator.mod,
    "power": power_of_numbers,
    "maximum": max,
    "minimum": min,
    "hypot": lambda a, b: (a * a + b * b) ** 0.5,
    "equal": lambda a, b: float(a == b),
    "not_equal": lambda a, b: float(a != b),
    "greater": lambda a, b: float(a > b),
    "greater_equal": lambda a, b: float(a >= b),
    "lesser": lambda a, b: float(a < b),
    "lesser_equal": lambda a, b: float(a <= b),
    "logical_and": lambda a, b: float(bool(a) and bool(b)),
    "logical_or": lambda a, b: float(bool(a) or bool(b)),
    "logical_xor": lambda a, b: float(bool(a) != bool(b)),
}


def _function(public: str, name: str, doc: str) -> Any:
    """The function `public`, which combines by `name`."""
    of_array = of_two(name)

    def function(lhs: Any, rhs: Any) -> Any:
        if lhs.__class__ is Array.main:
            return of_array(lhs, rhs)
        if is_number(lhs) and is_number(rhs):
            return _NUMBERS[name](lhs, rhs)
        return combine(name, lhs, rhs)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"{doc} of two arrays whose axes of 1 are stretched, or with a number."
    return function


add = _function("add", "add", "The sum")
subtract = _function("subtract", "sub", "The difference")
multiply = _function("multiply", "mul", "The product")
divide = _function("divide", "div", "The quotient")
true_divide = _function("true_divide", "div", "The quotient")
modulo = _function("modulo", "mod", "The remainder")


def power(base: Any, exp: Any) -> Any:
    """The power of two arrays whose axes of 1 are stretched, or with a number."""
    return _power(base, exp)


_power = _function("power", "power", "The power")
maximum = _function("maximum", "maximum", "The greater")
minimum = _function("minimum", "minimum", "The lesser")
hypot = _function("hypot", "hypot", "The hypotenuse")
equal = _function("equal", "equal", "1 where equal, else 0,")
not_equal = _function("not_equal", "not_equal", "1 where different, else 0,")
greater = _function("greater", "greater", "1 where greater, else 0,")
greater_equal = _function("greater_equal", "greater_equal", "1 where not less, else 0,")
lesser = _function("lesser", "lesser", "1 where less, else 0,")
lesser_equal = _function("lesser_equal", "lesser_equal", "1 where not greater, else 0,")
logical_and = _function("logical_and", "logical_and", "1 where both are not 0, else 0,")
logical_or = _function("logical_or", "logical_or", "1 where one is not 0, else 0,")
logical_xor = _function("logical_xor", "logical_xor", "1 where exactly one is 0, else 0,")
