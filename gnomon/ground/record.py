"""Classes declared by their fields, made in a tenth of the time that `dataclass` takes for one.

A process that runs a small kernel or two would spend more time on making such classes than on
compiling. So `dataclasses` reads the fields and nothing else; what compares, hashes and shows is
shared by all of them, and what sets the fields of an instance is written when one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from itertools import chain, repeat
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, Generic, TypeVar, cast, dataclass_transform

from gnomon.base import complaint, shown

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])
_getters: dict[type, Callable[[Any], Any]] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    frozen: bool = True, eq: bool = True, slots: bool = True
) -> Callable[[type[T]], type[T]]:
    """The decorator of a class declared by its fields: as `dataclass` of the same arguments.

    >>> @record()
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), len({Point(1), Point(1)})
    (Point(x=1, y=0), True, 1)
    """

    def decorate(kind: type[T]) -> type[T]:
        made = fields_read(kind, slots)
        methods: dict[str, Any] = {"__init__": first, "__repr__": _shown, "__reduce__": reduced}
        if frozen:
            methods |= {n: vars(Frozen)[n] for n in ("__setattr__", "__delattr__")}
        if eq:
            methods |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        for name in methods.keys() - vars(kind).keys():
            setattr(made, name, methods[name])
        return made

    return decorate


def fields_read(kind: type[T], slots: bool = False) -> type[T]:
    """`kind` as a class of its fields, without methods."""
    if not kind.__doc__:  # `dataclass` would write the signature, by a tokenizer that takes 8 ms
        kind.__doc__ = kind.__name__
    return dataclass(init=False, eq=False, repr=False, slots=slots)(kind)


class cached_property(Generic[T]):
    """A property that is computed when first asked for, and kept in the instance's `__dict__`.

    That of `functools` takes a lock of the whole class up to Python 3.11: a child that is forked
    while another thread computes one would wait for it for ever. Here threads that come together
    compute it each, and all get the same.

    >>> class Disc:
    ...     @cached_property
    ...     def points(self):
    ...         return [0]
    >>> disc = Disc()
    >>> disc.points is disc.points
    True
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> T:
        if instance is None:
            return cast(T, self)
        made: T = instance.__dict__.setdefault(self.make.__name__, self.make(instance))
        return made


def whole(cls: C) -> C:
    """A class of which all slots are set, to what they are said to be, before anybody sees one.

    Native code then does not look whether they are.

    Raises:
        TypeError: its instances do not refuse assignments, so that it cannot promise that.
    """
    if not issubclass(cls, Frozen):
        raise TypeError(f"{cls.__name__}: a whole class is a Frozen one")
    cls.whole = cls  # type: ignore[attr-defined]  # not its subclasses
    return cls


def inner(cls: C) -> C:
    """A class of the package's own, which alone sets its slots, to what they are said to be.

    Native code then looks whether they are set, and at nothing else.
    """
    cls.inner = cls  # not its subclasses
    return cls


def first(self: Any, *values: Any, **named: Any) -> None:
    """`__init__` of the first instance: writes that of all others."""
    kind = next(c for c in type(self).__mro__ if "__dataclass_fields__" in vars(c))
    write = _written(kind)
    type.__setattr__(kind, "__init__", write)
    write(self, *values, **named)


def fields_of(kind: Any) -> tuple[Field[Any], ...]:
    """The fields of a class that is declared by them."""
    return fields(kind)


def _written(kind: type) -> Callable[..., None]:
    """What sets the fields of an instance: one function, as if it were written by hand."""
    names: dict[str, Any] = {"put": object.__setattr__, "missing": MISSING}
    plain = vars(object)["__setattr__"] is kind.__setattr__
    parameters, lines = [], []
    for f in fields_of(kind):
        value = f.name
        if f.default_factory is not MISSING:
            names[f"_{f.name}"] = f.default_factory
            value = f"_{f.name}()"
            if f.init:
                parameters.append(f"{f.name}=missing")
                value += f" if {f.name} is missing else {f.name}"
        elif not f.init:
            continue
        elif f.default is not MISSING:
            names[f"_{f.name}"] = f.default
            parameters.append(f"{f.name}=_{f.name}")
        else:
            parameters.append(f.name)
        lines.append(f" self.{f.name} = {value}" if plain else f" put(self, {f.name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append(" self.__post_init__()")
    head = f"def __init__({', '.join(['self', *parameters])}):"
    text = "\n".join([head, *(lines or [" pass"])])
    exec(text, names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made


def _values(x: Any) -> Any:
    """What an instance is compared by."""
    kind = type(x)
    try:
        return _getters[kind](x)
    except KeyError:
        names = [f.name for f in fields_of(kind) if f.compare]
        get = _getters[kind] = attrgetter(*names) if names else lambda _: ()
        return get(x)


def _equal(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


@recursive_repr()
def _shown(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields_of(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def reduced(self: Any) -> tuple[Any, ...]:
    """`__reduce__` of a record: made anew of its fields."""
    return type(self), tuple(getattr(self, f.name) for f in fields_of(self) if f.init)


class Frozen:
    """A base class whose instances refuse assignments; their constructors use `put`.

    Native code reads their slots without a look at what is there. A property that has a setter is
    assigned by that.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        found = getattr(type(self), name, None)
        if isinstance(found, property) and found.fset is not None:
            found.fset(self, value)
            return
        raise FrozenInstanceError(
            complaint(type(self).__name__, name, "no assignment", shown(value))
        )

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(complaint(type(self).__name__, name, "no deletion", "one"))


put = object.__setattr__  #: sets a slot of a frozen instance, for the package itself


def put_all(
    thing: object, names: Sequence[str], values: Sequence[object], unset: Sequence[str] = ()
) -> None:
    """Set slots and unset others, between which no thread and no signal's handler comes."""
    gone = map(object.__delattr__, repeat(thing), unset)
    any(chain(map(put, repeat(thing), names, values), gone))
