"""Python's operators on arrays: with another array, or with a number on either side."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from gnomon.base import GnomonError, check_kind, complaint, shown
from gnomon.ground.frames import shorten
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import LEARNT
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.values import converted
from gnomon.ndarray.lazy import pending
from gnomon.ndarray.lazy.applied import applying
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ndarray.lazy.native_pend import NativePend, native_pend_by
from gnomon.ndarray.lazy.numbers import sharing_of
from gnomon.ndarray.lazy.trace import Rule
from gnomon.ops import registry
from gnomon.ops.binary import FORMS
from gnomon.ops.op import Op

Method = Callable[[Any, Any], Any]

_NUMBERS = float, int, np.generic, Number  # the last takes longest to tell
_EXACT = 1 << 53  # up to here, Python's integers are floats


def is_number(value: object) -> bool:
    """Whether an operator takes `value` as a number: Python's and NumPy's, bool included."""
    return isinstance(value, _NUMBERS)


def number(value: Any) -> Any:
    """`value` as operators take it: NumPy's numbers and truths become Python's.

    >>> number(True), number(np.int64(3)), number(np.float32(0.5))
    (1, 3, 0.5)
    """
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, bool) else value


@functools.cache
def _pair(name: str) -> tuple[Any, Any]:
    """The operators of two arrays: of one shape, and with axes stretched."""
    forms = FORMS[name]
    return registry.find(forms.elemwise).parse({}), registry.find(forms.broadcast).parse({})


@functools.cache
def _single(name: str, left: bool) -> type[Op]:
    """The class of operators of an array and a number, which stands `left` where that matters."""
    forms = FORMS[name]
    return registry.find((forms.reversed or forms.scalar) if left else forms.scalar)


def both(name: str, lhs: Any, rhs: Any, out: Any = None) -> Any:
    """The function `name` of two arrays, whose axes of 1 are stretched.

    All elements of a sparse array count beside a dense one on its left, as in MXNet: the operator
    that stretches keeps no storage.
    """
    stretches = lhs._layout.shape != rhs._layout.shape or lhs.stype == "default" != rhs.stype
    return invoke(_pair(name)[stretches], (lhs, rhs), out)


def with_number(name: str, array: Any, value: Any, out: Any = None, left: bool = False) -> Any:
    """The function `name` of an array and a number; `left` where the number stands left."""
    return invoke(_single(name, left).parse({"scalar": number(value)}), (array,), out)


def combine(name: str, lhs: Any, rhs: Any, out: Any = None) -> Any:
    """The function `name` of arrays or numbers, of which one at least is an array.

    Raises:
        TypeError: an operand is neither.
    """
    try:
        if isinstance(lhs, Array):
            if isinstance(rhs, Array):
                return both(name, lhs, rhs, out)
            if is_number(rhs):
                return with_number(name, lhs, rhs, out)
            if isinstance(rhs, np.ndarray):
                return both(name, lhs, lhs._like(rhs), out)
            raise TypeError(complaint(name, "rhs", "an NDArray or a number", shown(rhs)))
        check_kind(name, "rhs", rhs, Array, "an NDArray, as lhs is none")
        if is_number(lhs):
            mirrored = _MIRRORED.get(name, name)
            return with_number(mirrored, rhs, lhs, out, left=mirrored == name)
        if isinstance(lhs, np.ndarray):
            return both(name, rhs._like(lhs), rhs, out)
        raise TypeError(complaint(name, "lhs", "an NDArray or a number", shown(lhs)))
    except GnomonError as error:  # the frames below tell a program nothing
        shorten(error)
        raise


#: what a comparison is called when its sides are swapped
_MIRRORED = {
    "greater": "lesser",
    "greater_equal": "lesser_equal",
    "lesser": "greater",
    "lesser_equal": "greater_equal",
}


class PendCache:
    """Pending results of one function of operands met before, while recording those off the tape.

    `native_pend` is its native form; it is None until that pays.
    """

    __slots__ = ("inside", "name", "native_pend", "pairs", "rules", "singles", "swapped")

    def __init__(self, name: str, swapped: bool = False, inside: bool = False) -> None:
        self.name = name
        self.swapped = swapped  # whether the number stands on the left
        self.inside = inside  # whether the result goes where the array is
        self.native_pend: NativePend | None = None
        self.rules: dict[Any, Any] = {}  # of two arrays whose layouts were met
        self.pairs: Any = None  # in_place of the operators: of two arrays, of one shape and not,
        self.singles: Any = None  # and of an array and a number

    def __call__(self, array: Any, other: Any, hold: bool = False) -> Any:
        """The pending result; None where the operands are not as usual, and nothing was done."""
        if self.native_pend is None:
            self._begin()
        if array.__class__ is not Array.main:
            return None
        kind = other.__class__
        is_pair = kind is Array.main
        if (mode.recording or mode.predicting) and (
            array._tape is not None or (is_pair and other._tape is not None)
        ):
            return None
        if is_pair:
            rule = self._rule(array._layout, other._layout)
            return None if rule is None else pending.pair(rule, array, other, hold)
        number = kind is float or (kind is int and -_EXACT <= other <= _EXACT)
        if number and self.singles.fields:  # else the number is part of the operator
            return pending.single(self.singles, (float(other),), array, hold)
        return None

    def _rule(self, lhs: Layout, rhs: Layout) -> Rule | None:
        """The rule of two arrays of these layouts, where there is one already."""
        sharing = self.pairs[lhs.shape != rhs.shape]
        rule: Rule | None = sharing.kind.rules.get((lhs, rhs))
        if rule is None or (self.inside and rule.shape != lhs.shape):
            return None
        LEARNT.put(self.rules, (lhs, rhs), rule)
        return rule

    def _begin(self) -> None:
        """Look the operators up, at the first call, and have a native form once that pays."""
        if self.singles is None:
            self.pairs = [sharing_of(op) for op in _pair(self.name)]
            name = _MIRRORED.get(self.name, self.name) if self.swapped else self.name
            kind = _single(name, self.swapped and name == self.name)
            self.singles = sharing_of(kind.parse({"scalar": 1.0}))
        pairs, shared = {} if self.swapped else self.rules, self.singles
        self.native_pend = native_pend_by(pairs, shared.kind.rules if shared.fields else None)


def of_two(name: str) -> Method:
    """The function `name` of an array and another one, or a number."""
    cache = PendCache(name)

    def function(self: Any, other: Any) -> Any:
        native_pend = cache.native_pend
        made = None if native_pend is None else native_pend(here.own, self, other)
        if made is None:
            made = cache(self, other)
        return combine(name, self, other) if made is None else made

    return function


def _method(name: str, sign: str) -> Method:
    """The method of `array sign other`."""
    method = of_two(name)
    method.__doc__ = f"The array of `{sign}`, with an array or a number."
    return method


def _swapped(name: str, sign: str) -> Method:
    """The method of `other sign array`."""
    cache = PendCache(name, swapped=True)

    def method(self: Any, other: Any) -> Any:
        native_pend = cache.native_pend
        made = None if native_pend is None else native_pend(here.own, self, other)
        if made is None and not isinstance(other, Array):
            made = cache(self, other)
        return combine(name, other, self) if made is None else made

    method.__doc__ = f"The array of `{sign}` with the number on the left."
    return method


def _in_place(name: str, sign: str) -> Method:
    """The method of `array sign= other`."""
    cache = PendCache(name, inside=True)

    def method(self: Any, other: Any) -> Any:
        native_pend = cache.native_pend
        made = None if native_pend is None else native_pend(here.own, self, other)
        if made is None:
            made = cache(self, other, True)
        if made is None or not pending.write(made, self):
            return combine(name, self, other, out=self)
        return self

    method.__doc__ = f"`{sign}=` with an array or a number; writes into this array."
    return method


class Arithmetic(Array):
    """`+ - * / % **` with in-place forms, comparisons (0 and 1), negation and `abs`."""

    __slots__ = ()
    __array_priority__ = 1000.0

    __add__ = _method("add", "+")
    __radd__ = _swapped("add", "+")
    __iadd__ = _in_place("add", "+")
    __sub__ = _method("sub", "-")
    __rsub__ = _swapped("sub", "-")
    __isub__ = _in_place("sub", "-")
    __mul__ = _method("mul", "*")
    __rmul__ = _swapped("mul", "*")
    __imul__ = _in_place("mul", "*")
    __truediv__ = _method("div", "/")
    __rtruediv__ = _swapped("div", "/")
    __itruediv__ = _in_place("div", "/")
    __mod__ = _method("mod", "%")
    __rmod__ = _swapped("mod", "%")
    __imod__ = _in_place("mod", "%")
    __pow__ = _method("power", "**")
    __rpow__ = _swapped("power", "**")
    __gt__ = _method("greater", ">")
    __ge__ = _method("greater_equal", ">=")
    __lt__ = _method("lesser", "<")
    __le__ = _method("lesser_equal", "<=")
    _equal = _method("equal", "==")
    _not_equal = _method("not_equal", "!=")

    def __eq__(self, other: Any) -> Any:
        """The array of `==`, with an array or a number."""
        return self._equal(other)

    def __ne__(self, other: Any) -> Any:
        """The array of `!=`, with an array or a number."""
        return self._not_equal(other)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __neg__(self) -> Any:
        """The array times -1."""
        return self * -1.0

    def __abs__(self) -> Any:
        """The array of absolute values."""
        return applying("abs")((self,))

    def _like(self, values: Any) -> Any:
        """A NumPy array as an array beside this one: on its device, in its dtype."""
        return Array._around(converted(values, self._dtype), self.context)
