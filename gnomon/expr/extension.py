"""Extensions from outside the package: entered by a decorator, or found by an entry point.

A package that offers some names its module (or one function) in its metadata:

    [project.entry-points."gnomon.extensions"]
    diagonal = "their_package.diagonal"

It is imported when a name is first asked for that is not registered yet, once per process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from gnomon.base import ParamError, complaint, nearest, shown
from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.expr.reducer import REDUCERS
from gnomon.ground.lock import first_use, load_module
from gnomon.registry import Registry

GROUP = "gnomon.extensions"
EXTENSIONS: Registry[Callable[..., Expr]] = Registry("extension")
F = TypeVar("F", bound=Callable[..., Expr])
_loaded: set[str] = set()


def extension(function: F) -> F:
    """Enter a function that makes an expression; it is then `gnomon.shadow.<its name>` too.

    >>> @extension
    ... def twice(src):
    ...     return src + src
    >>> find("twice") is twice
    True

    Raises:
        ParamError: it has no name of its own, or another function, or `gnomon.shadow`, has that.
    """
    name = getattr(function, "__name__", "")
    if not callable(function) or not name.isidentifier():
        expected = "a function with a name"
        raise ParamError(complaint("extension", "function", expected, shown(function)))
    if name in taken():
        expected = "a name that gnomon.shadow does not have already"
        raise ParamError(complaint("extension", "function", expected, name))
    EXTENSIONS.register(name, function)
    return function


def taken() -> Collection[str]:
    """The names that `gnomon.shadow`, where extensions are looked for, has itself."""
    return [name for name in dir(sys.modules.get("gnomon.shadow")) if not name.startswith("_")]


def find(name: str) -> Callable[..., Expr]:
    """The extension `name`, from an installed package where it is not registered.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in EXTENSIONS:
        load()
    return EXTENSIONS.get(name)


def load() -> None:
    """Import what installed packages offer, each once."""
    with first_use:
        _load_each(load_module("importlib.metadata").entry_points(group=GROUP))


def _load_each(entries: Iterable[Any]) -> None:
    for entry in entries:
        if entry.value in _loaded:
            continue
        _loaded.add(entry.value)
        thing = entry.load()
        if callable(thing) and thing.__name__ not in {*EXTENSIONS.names(), *taken()}:
            extension(thing)


def elsewhere(name: str) -> str:
    """Where a name is that is no extension, or the nearest there is; "" for nowhere."""
    if name in REDUCERS:
        return f"; reduce(e, {name!r}, axes) is a reduction"
    if hasattr(fn, name):
        return f"; fn.{name} is a function of elements"
    return nearest(name, taken())
