"""Deferred numbers: what stands for a number while a function is traced.

Arithmetic on one gives another, which is computed anew from the numbers of each call, by Python's
own rules and in its precision. Asking for its value is an error: the answer would be that of one
call, and stay in the traced function for all others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from gnomon.base import GnomonError

Values: TypeAlias = Sequence[Any]

_WHOLE = (int, np.integer, np.bool_)

#: the device of tensors that stand for others while a function is traced
TRACED = "traced"


class TraceError(GnomonError, TypeError):
    """A function that cannot be traced."""


def values_asked(argument: str, tensor: object) -> TraceError:
    """The error of asking for the elements of what stands for a tensor, an argument."""
    return TraceError(
        f"{argument}: the values of {tensor!r} are not known while its function is traced: what "
        "needs them has to be done outside of the function"
    )


def _operator(how: Callable[[Any, Any], Any], sign: str) -> tuple[Any, Any]:
    """The methods of `a sign b` of a Deferred on the left, and on the right."""
    return (
        lambda self, other: joined(how, sign, self, other),
        lambda self, other: joined(how, sign, other, self),
    )


class Deferred:
    """A number that each call brings: `compute(values)` of the call's arguments.

    >>> rate = Deferred(lambda values: values[0], "rate")
    >>> half = (1 - rate) / 2
    >>> half, half.compute([0.5])
    (<(1 - rate) / 2>, 0.25)
    >>> half > 0
    Traceback (most recent call last):
    gnomon.expr.deferred.TraceError: (1 - rate) / 2 is not known while its function is traced: it
    can be part of expressions, not decide what the function does; name its argument in `static`
    """

    __slots__ = ("compute", "place", "text", "whole")
    __hash__ = object.__hash__
    __array_priority__ = 1000.0  # arrays, and float64s, on the left leave it to the methods here

    def __init__(
        self,
        compute: Callable[[Values], Any],
        text: str,
        whole: bool = False,
        place: int | None = None,
    ) -> None:
        self.compute, self.text = compute, text
        self.whole = whole  # whether it is an int
        self.place = place  # of the argument that it is itself

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def _unknown(self, *others: object, **options: object) -> NoReturn:
        raise TraceError(
            f"{self.text} is not known while its function is traced: it can be part of "
            "expressions, not decide what the function does; name its argument in `static`"
        )

    __bool__ = __float__ = __int__ = __index__ = __complex__ = __array__ = _unknown
    __round__ = __trunc__ = __floor__ = __ceil__ = _unknown
    __str__ = __format__ = _unknown

    def _compared(self, other: object) -> Any:
        return self._unknown() if number(other) else NotImplemented

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared

    def __pos__(self) -> Deferred:
        return self

    def __neg__(self) -> Deferred:
        return Deferred(lambda v: -self.compute(v), f"-{bracketed(self)}", self.whole)

    def __abs__(self) -> Deferred:
        return Deferred(lambda v: abs(self.compute(v)), f"abs({self.text})", self.whole)

    __add__, __radd__ = _operator(operator.add, "+")
    __sub__, __rsub__ = _operator(operator.sub, "-")
    __mul__, __rmul__ = _operator(operator.mul, "*")
    __truediv__, __rtruediv__ = _operator(operator.truediv, "/")
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv, "//")
    __mod__, __rmod__ = _operator(operator.mod, "%")
    __pow__, __rpow__ = _operator(operator.pow, "**")
    __and__, __rand__ = _operator(operator.and_, "&")
    __or__, __ror__ = _operator(operator.or_, "|")
    __xor__, __rxor__ = _operator(operator.xor, "^")
    __lshift__, __rlshift__ = _operator(operator.lshift, "<<")
    __rshift__, __rrshift__ = _operator(operator.rshift, ">>")


def joined(how: Callable[[Any, Any], Any], sign: str, a: Any, b: Any) -> Any:
    """`a sign b`, at each call; NotImplemented beside anything but numbers.

    Raises:
        TraceError: beside an array of NumPy, which holds what it is given at once.
    """
    for x, other in ((a, b), (b, a)):
        if isinstance(x, np.ndarray):
            other._unknown()
    if not (number(a) and number(b)):
        return NotImplemented
    left, right = [x.compute if isinstance(x, Deferred) else (lambda v, x=x: x) for x in (a, b)]
    whole = sign in ("+", "-", "*", "//", "%") and all(
        isinstance(x, _WHOLE) or getattr(x, "whole", False) for x in (a, b)
    )
    text = f"{bracketed(a)} {sign} {bracketed(b)}"
    return Deferred(lambda v: how(left(v), right(v)), text, whole)


def number(x: object) -> bool:
    """Whether `x` is a number, deferred or not."""
    return isinstance(x, (Deferred, float, np.floating, *_WHOLE))


def bracketed(x: Any) -> str:
    """A number as a part of a formula."""
    if not isinstance(x, Deferred):
        return repr(x)
    return f"({x.text})" if " " in x.text else x.text
