"""once: a result that is made at the first call and then shared by every thread for good."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def once(make: Callable[..., T]) -> Callable[..., T]:
    """`make`, called once for each set of arguments; every caller gets the same object.

    `functools.cache` lets two threads that come first together keep a result each: with machine
    code, one of them would call what is freed when the other's takes its place. Here the later one
    is dropped before anybody has seen it. No lock: a forked child could inherit it taken.

    >>> @once
    ... def table(size):
    ...     return [0] * size
    >>> table(3) is table(3)
    True
    """
    made: dict[tuple[object, ...], T] = {}

    @functools.wraps(make)
    def get(*key: object) -> T:
        try:
            return made[key]
        except KeyError:
            return made.setdefault(key, make(*key))

    return get
