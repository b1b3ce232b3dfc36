"""Hooks: functions that blocks call around `forward`, until their handles are detached."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_numbers = itertools.count()


class HookHandle:
    """The handle of a hook; `detach`, or the end of a `with`, takes the hook away.

    >>> hooks = {}
    >>> with HookHandle() as handle:
    ...     handle.attach(hooks, print)
    ...     len(hooks)
    1
    >>> len(hooks)
    0
    """

    def __init__(self) -> None:
        self._hooks: dict[int, Callable[..., Any]] | None = None
        self._id = next(_numbers)

    def attach(self, hooks_dict: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        """Enter `hook`; a handle has one hook for good."""
        if self._hooks is not None:
            raise ValueError("HookHandle.attach: the handle has a hook already; make another one")
        hooks_dict[self._id] = hook
        self._hooks = hooks_dict

    def detach(self) -> None:
        """Take the hook away, if it is there."""
        if self._hooks is not None:
            self._hooks.pop(self._id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.detach()


def attached(hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> HookHandle:
    """The handle of a new hook.

    Raises:
        TypeError: `hook` cannot be called.
    """
    if not callable(hook):
        raise TypeError(f"hook: expected a function, got {hook!r}")
    handle = HookHandle()
    handle.attach(hooks, hook)
    return handle
