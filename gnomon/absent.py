"""What a program gets that asks a module for a name which is not there.

MXNet 1.9.1's public names stand in `gnomon/data/mxnet-names.txt`, a module in each line. One that
gnomon lacks is told to be on its way; anything else gets a hint at the names that are there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any, NoReturn

from gnomon.base import UnknownNameError, nearest

PAGE = "docs/differences.md, 'Not there yet'"


@functools.cache
def names() -> dict[str, frozenset[str]]:
    """MXNet's public names by module: '' is `mx` itself, 'ndarray.linalg' is `mx.nd.linalg`.

    Under 'operators' stand the names that model files use, aliases among them.
    """
    text = (files("gnomon") / "data" / "mxnet-names.txt").read_text(encoding="utf-8")
    rows = (line.partition(":") for line in text.splitlines())
    return {module: frozenset(listed.split()) for module, _, listed in rows}


def refuse(module: str, name: str, known: Iterable[str]) -> NoReturn:
    """Raise the AttributeError of `name`, which `module` has not; it has `known`.

    >>> refuse("gnomon.optimizer", "Adan", ["Adam", "SGD"])
    Traceback (most recent call last):
        ...
    AttributeError: module 'gnomon.optimizer' has no attribute 'Adan'; did you mean 'Adam'?
    """
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("__"):
        raise AttributeError(text, name=name)
    if name in names().get(module.removeprefix("gnomon").lstrip("."), ()):
        raise AttributeError(f"{text}: MXNet's {name} is not there yet ({PAGE})", name=name)
    raise AttributeError(text + nearest(name, known), name=name)


def unknown_operator(name: str, known: Iterable[str]) -> UnknownNameError:
    """The error of an operator that is not registered; `known` are."""
    if name in names()["operators"]:
        return UnknownNameError(f"operator {name!r}: MXNet's is not there yet ({PAGE})")
    return UnknownNameError(f"operator {name!r} is not registered{nearest(name, known)}")


def refusing(module: str, known: Iterable[str]) -> Callable[[str], Any]:
    """`__getattr__` of a module whose public names are `known`."""
    return lambda name: refuse(module, name, known)
