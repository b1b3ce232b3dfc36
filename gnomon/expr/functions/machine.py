"""Machines: what replays the formula of a scalar function, into Terms or over NumPy's arrays.

A whole number that an integer type does not hold is the nearest that it does wherever it is
computed with; in a comparison it is itself, so that `x >= 300` holds of no uint8. Of its bits there
are those that the type has, so that `x & ~15` clears four bits of any type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr.functions.formula import LOGIC, ROUNDING
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.expr.term import Arena, Number, Term, cast_number

if TYPE_CHECKING:
    from gnomon.expr.functions.scalar import ScalarFn


def held(value: Number, dtype: DType) -> Number:
    """A formula's number as `dtype` holds it."""
    return value if dtype.kind in "fb" else dtype.nearest(value)


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def beyond(value: object, dtype: DType) -> bool:
    """Whether an integer type does not hold this whole number; its comparisons are constant then.

    >>> beyond(300, dt.uint8), beyond(255, dt.uint8), beyond(300, dt.float16)
    (True, False, False)
    """
    if dtype.kind == "f" or not isinstance(value, int):
        return False
    low, high = dtype.limits
    return not low <= value <= high


class _Far(NamedTuple):
    """A number that the integer type of a formula does not hold, and the nearest that it does."""

    value: Number
    near: Any


class _Machine:
    """What machines of formulas share: numbers that an integer type does not hold."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def const(self, value: Number) -> Any:
        if isinstance(value, bool):
            return self.truth(value)
        near = self.holding(held(value, self.dtype))
        return _Far(value, near) if beyond(value, self.dtype) else near

    def op(self, name: str, *args: Any) -> Any:
        if name in COMPARED and any(isinstance(a, _Far) for a in args):
            # all that the type holds lies on one side of it, as 0 does
            a, b = [a.value if isinstance(a, _Far) else 0 for a in args]
            return self.truth(COMPARED[name](a, b))
        if name in LOGIC:
            args = tuple([self._low_bits(a) if isinstance(a, _Far) else a for a in args])
        return self.primitive(name, *map(near, args))

    def _low_bits(self, far: _Far) -> Any:
        return self.holding(cast_number(far.value, self.dtype))

    def truth(self, value: bool) -> Any:
        """A truth value."""
        raise TypeError(f"{type(self).__name__} must define truth()")

    def holding(self, value: Number) -> Any:
        """A number that the type holds."""
        raise TypeError(f"{type(self).__name__} must define holding()")

    def primitive(self, name: str, *args: Any) -> Any:
        """A primitive function of values."""
        raise TypeError(f"{type(self).__name__} must define primitive()")


def near(value: Any) -> Any:
    """A value of a machine as the type holds it."""
    return value.near if isinstance(value, _Far) else value


class TermMachine(_Machine):
    """Replays formulas into Terms of one dtype."""

    def __init__(self, arena: Arena, dtype: DType) -> None:
        super().__init__(dtype)
        self.arena = arena

    def truth(self, value: bool) -> Term:
        return self.arena.const(value, dt.bool_)

    def holding(self, value: Number) -> Term:
        return self.arena.const(value, self.dtype)

    def number(self, truth: Term) -> Term:
        return self.arena.cast(truth, self.dtype)

    def primitive(self, name: str, *args: Term) -> Term:
        if self.dtype.kind != "f":
            if name == "fma":
                return args[0] * args[1] + args[2]
            if name in ROUNDING or (name == "abs" and self.dtype.kind == "u"):
                return args[0]
            if name == "shr" and self.dtype.kind == "u":
                name = "lshr"
        if name == "ne" and args[1].constant == 0 and args[0].op == "cast":
            origin = args[0].args[0]
            if origin.dtype is dt.bool_:  # a comparison's 0 or 1, used as a condition
                return origin
        return self.arena.op(name, *args)

    def call(self, fn: ScalarFn, *args: Any) -> Term:
        return fn.terms(self.arena, tuple(map(near, args)))


class NumpyMachine(_Machine):
    """Replays formulas over arrays of one dtype."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__(dt.of(dtype))

    def truth(self, value: bool) -> Any:
        return np.asarray(value)

    def holding(self, value: Number) -> Any:
        return np.asarray(value, self.dtype.numpy)

    def number(self, truth: Any) -> Any:
        return np.asarray(truth).astype(self.dtype.numpy)

    def primitive(self, name: str, *args: Any) -> Any:
        if self.dtype.kind != "f":
            if name == "fma":
                return args[0] * args[1] + args[2]
            if name in ROUNDING:
                return args[0]
        return PRIMITIVES[name].numpy(*args)

    def call(self, fn: ScalarFn, *args: Any) -> Any:
        return fn.numpy(*map(near, args))
