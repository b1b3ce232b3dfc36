"""Shape and dtype rules in both directions: what is known so far, and how knowledge merges.

A rule is written once and run until nothing more is learned. It reads `s["data"]`, states
`s["weight"] = (n, k)`, and ends early by `s.need("data")` when that is not known yet.
Inside rules a dimension that is not known is `UNKNOWN`, which equals -1 and stays what it is under
arithmetic, so that a rule computes with sizes as if all were known. At the border to users MXNet's
0 stands for it, or -1 within `mx.util.np_shape`, where 0 is a size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from operator import index
from typing import Any, Generic, NamedTuple, TypeVar

from gnomon import config
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint, shown
from gnomon.dtype import DType
from gnomon.ops.param import Axis

T = TypeVar("T")
Shape = tuple[int, ...]
Partly = Sequence[Shape | None]  # shapes, of which some are not known
Inferred = tuple[list[Shape | None], list[Shape | None], list[Shape | None]]
F = TypeVar("F", bound="Facts[Any]")


class Dim(int):
    """A size that is not known: whatever is computed from it is not known either.

    >>> 2 * UNKNOWN + 1 is UNKNOWN, UNKNOWN == -1, sum((3, UNKNOWN, 4)) is UNKNOWN
    (True, True, True)
    """

    def _unknown(self, *others: object) -> Dim:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = _unknown

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: int = Dim(-1)


class Free(NamedTuple):
    """What an operator says of the shapes of dense inputs: sizes that do nothing but count, as rows
    or the terms of a product, and those that are fixed for it and its gradient.

    Neither depends on the first ones by numbers or choices: other loops are all that they make.
    `said` are numbers of its work that are no products of sizes: how large what it keeps is, and
    where parts of that begin. Windows go along the `spans`. These count where a library does the
    work, which looks at them itself, and where it is known what the results are; else they are
    fixed, too.
    """

    sizes: Shape
    fixed: Shape = ()
    said: Shape = ()
    spans: Shape = ()


class Undetermined(Exception):
    """A rule needs what is not known yet; inference goes on with what it has."""


def check_count(where: str, names: Collection[str], count: int) -> None:
    """ParamError unless there are as many inputs as the operator has, which are called so.

    >>> check_count("dot", ("lhs", "rhs"), 3)
    Traceback (most recent call last):
    gnomon.base.ParamError: dot: argument 'inputs': expected 2 of them: lhs, rhs, got 3
    """
    if count != len(names):
        expected = f"{len(names)} of them: {', '.join(names) or 'none'}"
        raise ParamError(complaint(where, "inputs", expected, count))


class Facts(Generic[T]):
    """What is known about each named input, output and state of one operator."""

    error: type[GnomonError] = GnomonError

    def __init__(self, where: str, names: Sequence[str], known: Sequence[T | None]) -> None:
        self.where = where
        self.names = tuple(names)
        self._known = dict(zip(names, known, strict=True))

    def __getitem__(self, name: str) -> T | None:
        return self._known[name]

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def __setitem__(self, name: str, value: T | None) -> None:
        if name not in self._known:
            raise self.error(complaint(self.where, "rule", f"one of {', '.join(self.names)}", name))
        if value is not None:
            self._known[name] = self.merge(name, self._known[name], value)

    def need(self, name: str) -> T:
        """What is known about `name`; ends the rule when nothing is."""
        value = self._known[name]
        if value is None:
            raise Undetermined(name)
        return value

    def same(self, *names: str) -> None:
        """State that all of `names` (without names: everything) agree."""
        group, whole = names or self.names, None
        for name in group:
            own = self[name]
            if own is not None:
                whole = own if whole is None else self.merge(name, own, whole)
        for name in group if whole is not None else ():
            self._known[name] = whole

    def state(self) -> tuple[T | None, ...]:
        """Everything known, in the order of the names."""
        return tuple(self._known.values())

    def merge(self, name: str, old: T | None, new: T) -> T:
        """`old` and `new` as one fact; an error naming both when they contradict."""
        raise TypeError(f"{type(self).__name__} says nothing of merging")

    def refuse(self, name: str, expected: object, got: object) -> GnomonError:
        """The error that `name` is `got` where `expected` was."""
        return self.error(complaint(self.where, name, expected, got))


class Shapes(Facts[Shape]):
    """Shapes known so far; a dimension -1 is not known."""

    error = ShapeError

    def merge(self, name: str, old: Shape | None, new: Shape) -> Shape:
        if type(new) is tuple and new == old:
            return old
        given = new
        try:
            new = tuple([UNKNOWN if d == UNKNOWN else index(d) for d in new])
        except TypeError:
            new = (-2,)
        if min(new, default=0) < UNKNOWN:
            expected = "a tuple of sizes, -1 for each that is not known, in its rule"
            raise self.refuse(name, expected, shown(given))
        if old is None:
            return new
        pairs = list(zip(old, new, strict=False))
        if len(old) != len(new) or any(a != b and UNKNOWN not in (a, b) for a, b in pairs):
            raise self.refuse(name, f"shape {show_shape(new)}", show_shape(old))
        return tuple(max(a, b) for a, b in pairs)

    def rank(self, name: str, *ranks: int, reason: str = "") -> Shape:
        """The shape of `name`, checked to have one of `ranks` axes; errors end with `reason`."""
        shape = self.need(name)
        if len(shape) not in ranks:
            wanted = " or ".join(str(r) for r in ranks)
            raise self.refuse(name, f"{wanted} axes{reason}", f"shape {show_shape(shape)}")
        return shape

    def axis(self, name: str, axis: int, extra: int = 0) -> int:
        """`axis` of `name` counted from the front; ShapeError when it has no such axis."""
        return normal_axis(self.where, axis, len(self.need(name)) + extra)

    def along(self, name: str, axis: Axis | None) -> Shape:
        """The shape of `name`, which has this axis; all elements in a row where that is None."""
        shape = self.need(name)
        if axis is None:
            return (times(shape),)
        axis.of(shape)
        return shape

    def alike(self, names: Sequence[str], rank: int, but: int) -> None:
        """State that `names` have `rank` axes and equal sizes along all of them except `but`."""
        free = (UNKNOWN,) * rank
        for name in names:
            self[name] = free
        for _ in range(2):
            for name, after in zip(names, (*names[1:], names[0]), strict=True):
                shape = self.need(name)
                self[after] = (*shape[:but], UNKNOWN, *shape[but + 1 :])


class Types(Facts[DType]):
    """Dtypes known so far."""

    error = DTypeError

    def check(self, name: str, kinds: str) -> None:
        """Refuse a dtype of `name` that is none of `kinds`: f, i, u or b."""
        found = self[name]
        if found is not None and found.kind not in kinds:
            words = {"f": "floating-point", "i": "signed", "u": "unsigned", "b": "truth"}
            raise self.refuse(name, f"{' or '.join(words[k] for k in kinds)} numbers", found.name)

    def merge(self, name: str, old: DType | None, new: DType) -> DType:
        if old is not None and old is not new:
            raise self.refuse(name, f"dtype {new.name}", old.name)
        return new


def one_dtype(*names: str, kinds: str = "", **others: DType) -> Any:
    """The rule that these (without names: everything) have one dtype, if told one of `kinds`.

    `others` have those that are given.
    """

    def types(op: Any, t: Types) -> None:
        t.same(*names)
        if kinds:
            t.check((names or t.names)[0], kinds)
        for name, dtype in others.items():
            t[name] = dtype

    return types


def fixed_dtypes(**given: DType) -> Any:
    """The rule that these have the dtypes that are given, and others any."""

    def types(op: Any, t: Types) -> None:
        for name, dtype in given.items():
            t[name] = dtype

    return types


def settle(facts: F, rule: Callable[[F], None]) -> bool:
    """Run `rule` until it learns nothing more; whether it ran to its end the last time."""
    while True:
        before = facts.state()
        try:
            rule(facts)
            complete = True
        except Undetermined:
            complete = False
        if facts.state() == before:
            return complete


def normal_axis(where: str, axis: int, ndim: int) -> int:
    """`axis` counted from the front; ShapeError when there is no such axis among `ndim`."""
    if not -ndim <= axis < ndim:
        raise ShapeError(complaint(where, "axis", f"an axis of {ndim} axes", axis))
    return axis % ndim


def normal_axes(where: str, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """`axes` counted from the front, in order; ShapeError when one is missing or named twice."""
    found = tuple(sorted(normal_axis(where, a, ndim) for a in axes))
    if len(set(found)) < len(found):
        raise ShapeError(complaint(where, "axis", "each axis once", tuple(axes)))
    return found


def times(dims: Sequence[int]) -> int:
    """The product of `dims`, which is not known when one of them is not."""
    return UNKNOWN if UNKNOWN in dims else math.prod(dims)


def known(shape: Shape | None) -> bool:
    """Whether `shape` is known in every dimension."""
    return shape is not None and UNKNOWN not in shape


def zero_is_unknown() -> bool:
    """Whether 0 is a size that is not known where users give and get shapes."""
    return not config.get("np_shape")


def from_border(shape: Sequence[int] | None, zero_unknown: bool) -> Shape | None:
    """A shape as given from outside: None and () say nothing, 0 (if `zero_unknown`) is -1."""
    if shape is None or (zero_unknown and len(shape) == 0):
        return None
    return tuple([UNKNOWN if d < 0 or (zero_unknown and d == 0) else int(d) for d in shape])


def to_border(shape: Shape | None, zero_unknown: bool) -> Shape | None:
    """The inverse of `from_border`."""
    if shape is None or UNKNOWN not in shape:
        return shape
    unknown = 0 if zero_unknown else -1
    return tuple([unknown if d == UNKNOWN else d for d in shape])


def show_shape(shape: Shape | None) -> str:
    """A shape in messages, `?` for what is not known."""
    if shape is None:
        return "unknown"
    inner = ", ".join("?" if d == UNKNOWN else str(d) for d in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
