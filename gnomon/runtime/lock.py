"""A lock that a thread may take twice and that tells who has it; work that waits for no lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, cast


class Reentrant(Protocol):
    """What is asked of Python's reentrant lock; `_is_owned` is what conditions ask too."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def _is_owned(self) -> bool: ...


def reentrant() -> Reentrant:
    """A new lock.

    >>> lock = reentrant()
    >>> with lock:
    ...     lock._is_owned()
    True
    """
    return cast(Reentrant, threading.RLock())


def if_free(lock: threading.Lock, work: Callable[[], object]) -> bool:
    """Whether nobody had the lock: then `work` has been done under it.

    An interrupt leaves the lock free wherever it falls. Between a call that took it and the store
    of the answer there would be room for one; here `extend` takes and tells in one call, made in C,
    and what gives it back is already around that.

    >>> if_free(threading.Lock(), lambda: print("alone"))
    alone
    True
    """
    taken: list[bool] = []
    try:
        taken.extend(filter(lock.acquire, (False,)))
        if taken:
            work()
    finally:
        if taken:
            lock.release()
    return bool(taken)
