"""Constructors that check what they are given: by annotations, by fields, by keywords' names."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, SupportsFloat, TypeVar, cast

from gnomon.base import ArgumentError, Later, complaint, nearest, shown
from gnomon.ground.record import record

if TYPE_CHECKING:
    import inspect
else:
    inspect = Later("inspect")


class Check(Protocol):
    """What one argument may be; all that is of the types in `plain` needs no look."""

    @property
    def plain(self) -> Collection[type]: ...

    def check(self, where: str, argument: str, value: Any) -> None:
        """Raise an error that names both where the argument may not be this value."""


@record()
class Whole:
    """Whole numbers from `low`, such as sizes of parameters.

    >>> Whole(1).check("Dense", "units", -3)
    Traceback (most recent call last):
    gnomon.base.ArgumentError: Dense: argument 'units': expected a whole number from 1, got -3
    """

    low: int
    plain: ClassVar[Collection[type]] = ()

    def check(self, where: str, argument: str, value: Any) -> None:
        """Refuse numbers below, truth values, and what is no whole number."""
        if value.__class__ is int and value >= self.low:
            return
        if isinstance(value, bool) or not _is_index(value) or value < self.low:
            expected = f"a whole number from {self.low}"
            raise ArgumentError(complaint(where, argument, expected, shown(value)))


@record()
class _Kind:
    """What an annotation says."""

    holds: Callable[[Any], bool]
    expected: str
    plain: Collection[type] = ()

    def check(self, where: str, argument: str, value: Any) -> None:
        if not self.holds(value):
            raise ArgumentError(complaint(where, argument, self.expected, shown(value)))


def _is_index(value: Any) -> bool:
    try:
        return bool(operator.index(value) == value)
    except (TypeError, ValueError):  # the latter: arrays of several elements
        return False


def _is_whole(value: Any) -> bool:
    return _is_index(value) or (isinstance(value, float) and value.is_integer())


def _has_truth(value: Any) -> bool:
    try:
        bool(value)
    except (TypeError, ValueError, RuntimeError):  # arrays of several elements
        return False
    return True


def _is_series(value: Any) -> bool:
    return hasattr(value, "__iter__") or hasattr(value, "__getitem__")


def _is_number(value: Any) -> bool:
    return isinstance(value, SupportsFloat) and getattr(value, "size", 1) == 1


def _are_strings(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, Iterable)  # once only, perhaps: what it holds is not looked at


Checks = dict[str, Check]  # by argument
Function = TypeVar("Function", bound=Callable[..., Any])

_KINDS = {
    "int": _Kind(_is_whole, "a whole number", (int, bool)),
    "float": _Kind(_is_number, "a number", (float, int, bool)),
    "str": _Kind(lambda value: isinstance(value, str), "a string", (str,)),
    "bool": _Kind(_has_truth, "True or False", (bool, NoneType, int, str)),
    "Iterable": _Kind(_is_series, "several values", (list, tuple)),
    "Sequence": _Kind(_is_series, "several values", (list, tuple)),
    "Sequence[str]": _Kind(_are_strings, "strings"),
    "Callable": _Kind(callable, "a function"),
    "None": _Kind(lambda value: value is None, "None", (NoneType,)),
    "dict": _Kind(lambda value: isinstance(value, Mapping), "a mapping", (dict,)),
    "Mapping": _Kind(lambda value: isinstance(value, Mapping), "a mapping"),
}


def _said(annotation: str) -> Check | None:
    """The check that an annotation stands for; None of those that say none."""
    parts = annotation.split(" | ")
    found = [_KINDS.get(part) or _KINDS.get(part.partition("[")[0]) for part in parts]
    kinds = [kind for kind in found if kind is not None]
    if len(kinds) < len(parts):
        return None
    holds = [kind.holds for kind in kinds]
    expected = " or ".join(kind.expected for kind in kinds)
    plain = [each for kind in kinds for each in kind.plain]
    return _Kind(lambda value: any(fits(value) for fits in holds), expected, plain)


def _annotated(function: Any, *inner: Any) -> Checks:
    """The checks of its annotations, and of those of the arguments that `inner` ones may be given.

    What a later one says of a name counts.
    """
    said: dict[str, Check | None] = {}
    for each in inner:
        annotations: Mapping[str, str] = getattr(each, "__annotations__", {})
        said.update((name, _said(annotations.get(name, ""))) for name in _optional(each))
    said.update((name, _said(text)) for name, text in function.__annotations__.items())
    return {name: check for name, check in said.items() if check}


def _optional(function: Any) -> Iterable[str]:
    """The arguments that have a default, of what is written in Python."""
    plain = getattr(function, "__wrapped__", function)
    if not hasattr(plain, "__code__"):
        return ()
    names = plain.__code__.co_varnames[: plain.__code__.co_argcount]
    return (*names[len(names) - len(plain.__defaults__ or ()) :], *(plain.__kwdefaults__ or ()))


def _look(
    where: str,
    checks: Checks,
    names: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Check what a call is given."""
    for name, value in zip(names, args, strict=False):
        if name in checks and value.__class__ not in checks[name].plain:
            checks[name].check(where, name, value)
    for name, value in kwargs.items():
        if name not in checks or value.__class__ in checks[name].plain:
            continue
        if name not in names[: len(args)]:  # else it is given twice
            checks[name].check(where, name, value)


def checked(function: Function) -> Function:
    """A function that checks its arguments by their annotations, before it runs.

    >>> @checked
    ... def area(width: float, height: float) -> float:
    ...     return width * height
    >>> area(2, "a")
    Traceback (most recent call last):
    gnomon.base.ArgumentError: area: argument 'height': expected a number, got 'a'
    """
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    found = functools.cache(lambda: _annotated(function))

    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        _look(function.__name__, found(), names, args, kwargs)
        return function(*args, **kwargs)

    return cast("Function", told)


class CheckedArguments:
    """Base of classes whose constructors check what they are given, before they run.

    Arguments annotated as numbers, strings, functions or mappings have to be such. `_fields` says
    more of some: of sizes, and of parameters of operators. The latter counts for the classes of
    gnomon alone: a program's may mean something else by them. An unknown keyword is told with the
    nearest known one; `_keyword_aliases` are words that users try for keywords that look otherwise.
    Constructors of programs are left as they are.

    >>> class Circle(CheckedArguments):
    ...     def __init__(self, radius: float) -> None: ...
    >>> Circle(radios=1)
    Traceback (most recent call last):
    TypeError: Circle: argument 'radios': expected one of radius, got 1; did you mean 'radius'?
    >>> Circle("a")
    Traceback (most recent call last):
    gnomon.base.ArgumentError: Circle: argument 'radius': expected a number, got 'a'
    """

    __slots__ = ()
    _keyword_aliases: ClassVar[Mapping[str, str]] = {}
    _fields: ClassVar[Mapping[str, Check]] = {}
    _checked_by: ClassVar[Callable[..., None]]

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "__init__" in vars(cls) and cls.__module__.partition(".")[0] == "gnomon":
            told = _checking(cls, vars(cls)["__init__"])
            type.__setattr__(cls, "__init__", told)
            type.__setattr__(cls, "_checked_by", told)


def _checking(cls: type, init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that does so."""
    names = init.__code__.co_varnames[1 : init.__code__.co_argcount]

    @functools.cache  # of the first call: most classes are never made
    def found() -> tuple[Checks, Checks]:
        bases = [vars(base) for base in reversed(cls.__mro__)]
        # what one constructor hands on to another it calls the same, but what it gives it itself
        of_all = _annotated(init, *(base.get("__init__") for base in bases))
        fields: Checks = functools.reduce(operator.or_, (b.get("_fields", {}) for b in bases), {})
        of_all |= {name: check for name, check in fields.items() if isinstance(check, Whole)}
        return of_all, of_all | fields

    @functools.wraps(init)
    def told(self: Any, *args: Any, **kwargs: Any) -> None:
        kind = type(self)
        if kind._checked_by is told:  # else what is given was looked at, by another's names perhaps
            ours = kind.__module__.startswith("gnomon.")
            _look(kind.__name__, found()[ours], names, args, kwargs)
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            frames = error.__traceback__
            if frames is not None and frames.tb_next is None:  # of the call, not of what it called
                _refuse_unknown(type(self), kwargs)
                # not the base that has it, nor a constructor that a program put in its place
                kinds = (k for k in type(self).__mro__ if getattr(k, "__init__", None) is told)
                called = f"{next(kinds, type(self)).__qualname__}.__init__"
                error.args = (str(error).replace(init.__qualname__, called, 1),)
            raise

    return told


def _refuse_unknown(kind: type[CheckedArguments], given: Mapping[str, Any]) -> None:
    """Raises TypeError where one of these is no keyword of the constructor of `kind`."""
    known: dict[str, None] = {}
    for each in kind.__mro__:  # as far as constructors hand on what they do not know
        init = each.__init__  # type: ignore[misc]  # mypy takes `each` for an instance
        _, *parameters = inspect.signature(init).parameters.values()
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        inner = bool(known)  # which gives the base what it must have
        known |= dict.fromkeys(p.name for p in named if p.default is not p.empty or not inner)
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    for name, value in given.items():
        if name not in known:
            got = f"{shown(value)}{nearest(kind._keyword_aliases.get(name, name), known)}"
            expected = f"one of {', '.join(known)}"
            raise TypeError(complaint(kind.__name__, name, expected, got)) from None
