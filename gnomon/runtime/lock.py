"""A lock that a thread may take twice, and that tells whether this one has it."""

from __future__ import annotations

import threading
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
