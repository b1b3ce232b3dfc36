"""Attributes for all symbols made in a scope: `with AttrScope(ctx_group="dev1"): ...`

State: each thread has a stack of what its scopes say, outer and inner merged; the current one is
its top. A scope object keeps only what it was given, so it may be entered many times.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from gnomon.base import ParamError, check_kind, complaint, shown


class _Scopes(threading.local):
    """The scopes this thread has entered, each merged with those around it."""

    def __init__(self) -> None:
        self.stack: list[AttrScope] = [AttrScope()]


class _Current:
    """`AttrScope.current`: what the scopes around this point say together."""

    def __get__(self, instance: object, owner: type) -> AttrScope:
        return AttrScope._scopes.stack[-1]


class AttrScope:
    """Attributes, strings all, that every symbol made inside gets; inner scopes win.

    >>> with AttrScope(ctx_group="dev1", lr_mult="2"), AttrScope(lr_mult="3"):
    ...     sorted(AttrScope.current.get({"mood": "good"}).items())
    [('ctx_group', 'dev1'), ('lr_mult', '3'), ('mood', 'good')]

    Raises:
        ParamError: a value that is not a string.
    """

    _scopes: ClassVar[Any]
    current: ClassVar[Any] = _Current()

    def __init__(self, **kwargs: str) -> None:
        for name, value in kwargs.items():
            if not isinstance(value, str):
                raise ParamError(complaint("AttrScope", name, "a string", shown(value)))
        self._attr = kwargs

    def get(self, attr: Mapping[str, str] | None) -> dict[str, str]:
        """This scope's attributes and `attr`, which wins; TypeError where that is no mapping."""
        if attr is None:
            return dict(self._attr)
        check_kind("symbol", "attr", attr, Mapping, "a mapping of strings")
        return {**self._attr, **attr}

    def __enter__(self) -> AttrScope:
        merged = AttrScope(**{**self.current._attr, **self._attr})
        self._scopes.stack.append(merged)
        return merged

    def __exit__(self, *exc: object) -> None:
        self._scopes.stack.pop()


AttrScope._scopes = _Scopes()
