"""Names that Python's modules had when programs for MXNet were written, up to Python 3.7 or so."""

from __future__ import annotations

import collections.abc
from types import ModuleType
from typing import Any, NamedTuple

from gnomon.ground.lock import load_module


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` told of a function."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Any) -> ArgSpec:
    """Names and defaults of a function's arguments; ValueError where it has keywords alone."""
    found = load_module("inspect").getfullargspec(func)
    if found.kwonlyargs:
        raise ValueError(f"getargspec: {func!r} has arguments that are given by name alone")
    return ArgSpec(*found[:4])


# module -> name -> what it was
NAMES: dict[str, dict[str, Any]] = {
    "collections": {name: getattr(collections.abc, name) for name in collections.abc.__all__},
    "inspect": {"getargspec": getargspec},
    "time": {"clock": "process_time"},  # on Unix
    "fractions": {"gcd": "math.gcd"},
    "base64": {"encodestring": "encodebytes", "decodestring": "decodebytes"},
}


def restore(module: ModuleType) -> None:
    """Add to a module of Python the names that it had.

    >>> import fractions
    >>> restore(fractions)
    >>> fractions.gcd(12, 18)
    6
    """
    for name, was in NAMES.get(module.__name__, {}).items():
        if not hasattr(module, name):
            setattr(module, name, _found(module, was) if isinstance(was, str) else was)


def _found(module: ModuleType, name: str) -> Any:
    where, _, last = name.rpartition(".")
    return getattr(load_module(where) if where else module, last)
