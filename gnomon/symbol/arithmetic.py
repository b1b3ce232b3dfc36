"""Python's operators on symbols: with another symbol, or with a number on either side."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from gnomon.base import complaint, shown
from gnomon.symbol.apply import Composite, apply, is_symbol

Method = Callable[[Any, Any], Any]


def _method(sign: str, both: str, scalar: str) -> Method:
    """A method that applies `both` to two symbols, `scalar` to a symbol and a number."""

    def method(self: Composite, other: Any) -> Any:
        return combine(type(self), sign, self, other, both, scalar)

    method.__doc__ = f"The symbol of `{sign}`, with a symbol or a number."
    return method


def combine(
    kind: type[Composite], sign: str, symbol: Any, other: Any, both: str, scalar: str
) -> Any:
    """`symbol` and `other` by the operator `both`, or by `scalar` where `other` is a number.

    Raises:
        TypeError: `other` is neither.
    """
    if is_symbol(other):
        return apply(kind, both, both, (symbol, other), {}, {})
    if isinstance(other, (Number, np.generic)):
        return apply(kind, scalar, scalar, (symbol,), {}, {"scalar": number(other)})
    raise TypeError(complaint(f"Symbol {sign}", "other", "a symbol or a number", shown(other)))


def number(value: Any) -> Any:
    """`value` as operators take it: NumPy's numbers and truths become Python's.

    >>> number(True), number(np.int64(3)), number(0.5)
    (1, 3, 0.5)
    """
    if isinstance(value, np.floating):
        return float(str(value))  # the shortest text that means it: 0.1 for np.float32(0.1)
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, bool) else value


class Arithmetic(Composite):
    """`+ - * / % **`, comparisons, negation and `abs`; comparisons give 0 and 1."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's numbers on the left leave it to the methods here
    __hash__ = None  # type: ignore[assignment]  # == composes

    __add__ = __radd__ = __iadd__ = _method("+", "_Plus", "_PlusScalar")
    __sub__ = __isub__ = _method("-", "_Minus", "_MinusScalar")
    __rsub__ = _method("-", "_Minus", "_RMinusScalar")
    __mul__ = __rmul__ = __imul__ = _method("*", "_Mul", "_MulScalar")
    __truediv__ = __itruediv__ = _method("/", "_Div", "_DivScalar")
    __rtruediv__ = _method("/", "_Div", "_RDivScalar")
    __mod__ = _method("%", "_Mod", "_ModScalar")
    __rmod__ = _method("%", "_Mod", "_RModScalar")
    __pow__ = _method("**", "_Power", "_PowerScalar")
    __rpow__ = _method("**", "_Power", "_rpower_scalar")
    __eq__ = _method("==", "_equal", "_equal_scalar")  # type: ignore[assignment]
    __ne__ = _method("!=", "_not_equal", "_not_equal_scalar")  # type: ignore[assignment]
    __gt__ = _method(">", "_greater", "_greater_scalar")
    __ge__ = _method(">=", "_greater_equal", "_greater_equal_scalar")
    __lt__ = _method("<", "_lesser", "_lesser_scalar")
    __le__ = _method("<=", "_lesser_equal", "_lesser_equal_scalar")

    def __neg__(self) -> Any:
        """The symbol times -1."""
        return self * -1.0

    def __abs__(self) -> Any:
        """The symbol of absolute values."""
        return apply(type(self), "abs", "abs", (self,), {}, {})
