"""Tuples with named items, whose classes are made in a sixth of the time that `typing`'s take.

A process that trains makes a hundred such classes and instances of half of them. `typing` looks at
each annotation and writes each class a constructor; here annotations stay as they are, methods are
shared, and the constructor is written when the first instance is made.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]  # what `namedtuple` reads by
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NamedTuple

__all__ = ["NamedTuple"]


def _first(cls: type, *values: Any, **named: Any) -> Any:
    """`__new__` of the first instance: writes that of all others."""
    kind: Any = next(c for c in cls.__mro__ if "_field_defaults" in vars(c))
    items = ", ".join(kind._fields)
    made = eval(
        f"lambda _cls, {items}: _new(_cls, ({items},))",
        {"_new": tuple.__new__, "__name__": f"namedtuple_{kind.__name__}"},
    )
    made.__defaults__ = tuple(kind._field_defaults.values())
    made.__name__, made.__qualname__ = "__new__", f"{kind.__qualname__}.__new__"
    kind.__new__ = made
    return made(cls, *values, **named)


def _made(cls: Any, items: Iterable[Any]) -> Any:
    """A new instance of a sequence or an iterable."""
    made = tuple.__new__(cls, items)
    if len(made) != len(cls._fields):
        raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
    return made


def _replaced(self: Any, /, **named: Any) -> Any:
    """A new instance with other values of the items that are named."""
    made = self._make(map(named.pop, self._fields, self))
    if named:
        raise ValueError(f"Got unexpected field names: {list(named)!r}")
    return made


def _shown(self: Any) -> str:
    items = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"{type(self).__name__}({', '.join(items)})"


def _items(self: tuple[Any, ...]) -> tuple[Any, ...]:
    """What an instance is pickled and copied by."""
    return tuple(self)


def _as_dict(self: Any) -> dict[str, Any]:
    """The items by their names."""
    return dict(zip(self._fields, self, strict=True))


_SHARED = {
    "__slots__": (),
    "__new__": _first,
    "__repr__": _shown,
    "__getnewargs__": _items,
    "__replace__": _replaced,
    "_make": classmethod(_made),
    "_replace": _replaced,
    "_asdict": _as_dict,
}


class _Declaration(type):
    """What turns the declaration of items by annotations into a class of tuples."""

    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        fields = tuple(space.get("__annotations__", ()))
        defaults = {field: space.pop(field) for field in fields if field in space}
        getters = {field: _tuplegetter(k, "") for k, field in enumerate(fields)}
        told = {"_fields": fields, "__match_args__": fields, "_field_defaults": defaults}
        return type(name, (tuple,), {**_SHARED, **told, **getters, **space})


if not TYPE_CHECKING:
    NamedTuple = type.__new__(_Declaration, "NamedTuple", (), {"__doc__": __doc__})
