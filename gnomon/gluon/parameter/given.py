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


def check_initializers(*given: Any) -> None:
    """Raises TypeError where something says no way to fill arrays."""
    for init in given:
        if not (init is None or isinstance(init, str) or callable(init)):
            expected = "an Initializer, or the name of one"
            raise TypeError(complaint("initialize", "init", expected, f"{init!r:.60}"))


def contexts(ctx: Any) -> list[Context]:
    """One context, several, or the current one, as a list.

    Raises:
        TypeError: something else.
    """
    found = [current_context()] if ctx is None else [ctx] if isinstance(ctx, Context) else ctx
    try:
        fits = all(isinstance(each, Context) for each in found)
    except TypeError:
        fits = False
    if not fits:
        expected = "a context or a list of them"
        raise TypeError(complaint("initialize", "ctx", expected, f"{ctx!r:.60}"))
    return list(found)
