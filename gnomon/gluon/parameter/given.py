"""What parameters are given: initializers that wait for a shape, arrays of files, contexts."""

from __future__ import annotations

from typing import Any, NamedTuple

from gnomon.base import complaint
from gnomon.context import Context, current_context


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


def contexts(ctx: Any) -> list[Context]:
    """One context, several, or the current one, as a list.

    Raises:
        TypeError: something else.
    """
    found = [current_context()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
    for each in found:
        if not isinstance(each, Context):
            raise TypeError(complaint("initialize", "ctx", "a context or a list", repr(each)))
    return found
