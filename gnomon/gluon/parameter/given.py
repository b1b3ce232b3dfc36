"""What parameters are given: initializers that wait for a shape, arrays of files, contexts."""

from __future__ import annotations

from typing import Any, NamedTuple

from gnomon.base import ArgumentError, complaint, shown
from gnomon.context import Context


class Deferred(NamedTuple):
    """What `initialize` was told before the shape was known."""

    init: Any
    ctx: list[Context]
    default_init: Any
    data: Any = None


class Loadable(NamedTuple):
    """An array of a file that fits, and the contexts it is for."""

    data: Any
    ctx: list[Context]


def check_initializers(where: str, *given: Any) -> None:
    """Raises TypeError where something says no way to fill arrays."""
    for init in given:
        if not (init is None or isinstance(init, str) or callable(init)):
            expected = "an Initializer, or the name of one"
            raise ArgumentError(complaint(where, "init", expected, shown(init)))
