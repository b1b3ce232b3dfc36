"""The functions of `mx.sym` that the registry gives, made when they are first asked for."""

from __future__ import annotations

import functools
from typing import Any

from gnomon.ops import registry
from gnomon.ops.signature import home
from gnomon.symbol.apply import function
from gnomon.symbol.symbol import Symbol


@functools.cache
def find(space: str, name: str) -> Any:
    """The function called `name` in a namespace of `mx.sym` ('' is the top).

    Raises:
        AttributeError: no operator has this name there.
    """
    for full in _full_names(space, name):
        if registry.has(full):
            return function(Symbol, full, name, f"gnomon.symbol.{space}".rstrip("."))
    where = f"gnomon.symbol.{space}".rstrip(".")
    raise AttributeError(f"module {where!r} has no attribute {name!r}")


def _full_names(space: str, name: str) -> tuple[str, ...]:
    """What an operator that is `name` in `space` may be registered as."""
    if space in ("", "_internal", "op"):
        return (name,)
    return (f"_{space}_{name}", name) if space in ("random", "sparse") else (f"_{space}_{name}",)


def names(space: str) -> list[str]:
    """The names of all functions in a namespace."""
    return sorted(short for full in registry.names() for at, short in (home(full),) if at == space)
