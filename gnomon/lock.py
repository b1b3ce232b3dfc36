"""Locks whose blocks an interrupt cannot leave with the lock held; what forks and imports wait for.

`first_use` is held while something is used for the first time: a module imported, a library loaded,
code compiled, the process's threads and engine made. A fork waits for it, so that a child never
finds any of that half done by a thread it does not have; it waits for `import` statements of
gnomon's modules in other threads as well, which do not take the lock. It is taken before every
other lock: a thread that holds one must not ask for it.

An interrupt is an exception that a signal's handler raises between two steps of the interpreter. Up
to Python 3.13 it looks for signals nowhere between having entered a lock and being in the block
that gives it back; from 3.14 on it looks right after the call of `__enter__`, and the lock stays
held for good (10,000 of 17,000 interrupts of a loop of nothing else). It looks after no call that
a `for` makes: the locks here are taken by one; and their `__exit__`, made in C, begins without a
look.
"""

from __future__ import annotations

import importlib
import logging  # noqa: F401  whose lock a fork takes after ours if it was registered before them
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from types import FrameType, TracebackType
from typing import Any, Protocol, cast


class Held(Protocol):
    """What is asked of any lock."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Lock(Held, Protocol):
    """What is asked of Python's lock."""

    def locked(self) -> bool: ...


class Reentrant(Held, Protocol):
    """What is asked of Python's reentrant lock; `_is_owned` is what conditions ask too."""

    def _is_owned(self) -> bool: ...


def _enter(lock: Held) -> bool:
    """`__enter__` of a lock, without room for an interrupt once it is taken."""
    for _ in iter(lock.acquire, True):
        pass
    return True


class SafeLock:
    """Python's lock, entered without room for an interrupt."""

    __slots__ = ("_lock", "acquire", "locked", "release")

    def __init__(self) -> None:
        self._lock = lock = threading.Lock()
        self.acquire, self.release, self.locked = lock.acquire, lock.release, lock.locked

    __enter__ = _enter
    __exit__ = property(attrgetter("_lock.__exit__"))


# Python's reentrant lock, entered likewise
SafeReentrant = type(
    "SafeReentrant", (type(threading.RLock()),), {"__slots__": (), "__enter__": _enter}
)

_LOOKS_TOO_EARLY = sys.version_info >= (3, 14)


def exclusive() -> Lock:
    """A new lock for one holder.

    >>> with exclusive() as taken:
    ...     taken
    True
    """
    return cast(Lock, SafeLock() if _LOOKS_TOO_EARLY else threading.Lock())


def reentrant() -> Reentrant:
    """A new lock that its holder may take again, and that tells who has it.

    >>> lock = reentrant()
    >>> with lock:
    ...     lock._is_owned()
    True
    """
    return cast(Reentrant, SafeReentrant() if _LOOKS_TOO_EARLY else threading.RLock())


first_use = reentrant()
PATIENCE = 5.0


def load_module(name: str) -> Any:
    """The module `name`, imported while no other thread imports one of gnomon's, and no fork runs.

    >>> load_module("math").floor(2.5)
    2
    """
    # In an import statement it holds the interpreter's lock of a module, which the holder of
    # `first_use` may wait for: it must not wait for `first_use` in turn.
    if not first_use._is_owned() and _is_importing(sys._getframe()):
        return importlib.import_module(name)
    with first_use:
        return importlib.import_module(name)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether this frame is in an `import` statement of a module of gnomon's."""
    package = __name__.partition(".")[0]
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load":
            name = frame.f_locals.get("name")
            if isinstance(name, str) and name.startswith(f"{package}."):
                return True
        frame = frame.f_back
    return False


def _await_imports() -> None:
    """Let other threads end their `import` statements, which know nothing of `first_use`.

    A child would find the module half there, and locked for good. Not where this thread is in such
    a statement, for which another one may wait, and no longer than `PATIENCE` seconds.
    """
    mine, until = threading.get_ident(), time.monotonic() + PATIENCE
    if _is_importing(sys._getframe()):
        return
    while time.monotonic() < until:
        frames = sys._current_frames().items()
        if not any(_is_importing(frame) for thread, frame in frames if thread != mine):
            return
        first_use.release()
        time.sleep(1e-3)
        first_use.acquire()


def around_forks(
    before: Callable[[], object],
    after_in_parent: Callable[[], object],
    after_in_child: Callable[[], object],
) -> None:
    """Have these called around every fork of the process, in which `first_use` is held.

    What another thread registers while a fork waits for `first_use` is called after that fork
    without having been called before it: then only a child has something to do.
    """
    held: list[bool] = []  # one for each fork under way that began here

    def hold() -> None:
        first_use.acquire()
        _await_imports()
        held.append(True)
        before()

    def let_go(after: Callable[[], object], late: Callable[[], object]) -> None:
        if not held:
            late()
            return
        held.pop()
        try:
            after()
        finally:
            first_use.release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=hold,
            after_in_parent=partial(let_go, after_in_parent, bool),
            after_in_child=partial(let_go, after_in_child, after_in_child),
        )


around_forks(bool, bool, bool)


def if_free(lock: Lock, work: Callable[[], object]) -> bool:
    """Whether the lock was free: then `work` has been done under it.

    An interrupt leaves the lock free wherever it falls. Between a call that took it and the store
    of the answer there would be room for one; here `extend` takes and tells in one call, made in C,
    and what gives it back is already around that.

    >>> if_free(exclusive(), lambda: print("alone"))
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
