"""Locks whose blocks an interrupt cannot leave with the lock held; what forks and imports wait for.

`first_use` is held while something is used for the first time: a module imported, a library loaded,
code compiled, the process's threads and engine made. A fork waits for it, so that a child never
finds any of that half done by a thread it does not have; it waits for `import` statements of
gnomon's modules in other threads as well, which do not take the lock. So that no signal's handler
finds it half done either, it is called when the outermost block is over. It is taken before every
other lock: a thread that holds one must not ask for it.

An interrupt is an exception that a signal's handler raises between two steps of the interpreter. Up
to Python 3.13 it looks for signals nowhere between having entered a lock and being in the block
that gives it back; from 3.14 on it looks right after the call of `__enter__`, and the lock stays
held for good (10,000 of 17,000 interrupts of a loop of nothing else). It looks after no call that
a `for` makes: the locks here are taken by one; and their `__exit__`, made in C, begins without a
look.

Nor does it look within a `with` or `try` alone: from 3.12 on some jumps back of loops that stand
there (those of a condition at the loop's end) lie outside of what the block covers, and look. So
loops under a lock are functions of their own; `tests/test_lock.py` finds those that are not.
"""

from __future__ import annotations

import gc
import importlib
import logging  # whose lock a fork takes after ours if it was registered before them
import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from signal import SIGINT, pthread_kill
from types import TracebackType
from typing import Any, Protocol, cast

from gnomon.ground.handlers import put_off, resume
from gnomon.ground.importing import begins, is_importing, wait_while_others_import


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

    def _at_fork_reinit(self) -> None: ...


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


def is_held_once(lock: Reentrant) -> bool:
    """Whether the thread that has a reentrant lock took it once.

    >>> lock = reentrant()
    >>> with lock:
    ...     is_held_once(lock)
    True
    """
    return "count=1 " in repr(lock)  # CPython tells it in no other way before 3.12


class FirstUse:
    """A reentrant lock whose blocks no signal's handler runs in: it does when they are over."""

    __slots__ = ("_at_fork_reinit", "_depth", "_is_owned", "acquire", "release")

    def __init__(self) -> None:
        lock, self._depth = reentrant(), 0
        self.acquire, self.release, self._is_owned = lock.acquire, lock.release, lock._is_owned
        self._at_fork_reinit = lock._at_fork_reinit

    def __enter__(self) -> bool:
        _enter(self)
        try:
            if not self._depth:
                put_off()
            self._depth += 1
        except BaseException:
            self.release()
            resume()
            raise
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        outermost = not self._depth
        self.release()
        if outermost:
            resume()


first_use = FirstUse()


def load_module(name: str) -> Any:
    """The module `name`, imported while no other thread imports one of gnomon's, and no fork runs.

    >>> load_module("math").floor(2.5)
    2
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        return module  # nothing is imported: threads need not wait for each other
    # In an import statement it holds the interpreter's lock of a module, which the holder of
    # `first_use` may wait for: it must not wait for `first_use` in turn.
    if not first_use._is_owned() and is_importing():
        return importlib.import_module(name)
    with first_use, _nothing_collected():
        return importlib.import_module(name)


_frozen: list[bool] = []  # filled when a program has frozen objects: to count many takes long


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """A scope of imports, in one thread at a time, which make many objects that nearly all stay.

    The collector does not start by itself. Its switch stays as it is, for other threads may turn
    it. What modules hold for good counts as old at once, so that passes over the young skip it;
    not where a program has frozen objects, which would be thawed.

    >>> with _nothing_collected():
    ...     gc.isenabled(), gc.get_threshold()[0]
    (True, 0)
    """
    before = gc.get_threshold()
    gc.set_threshold(0, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == 0:  # the program has set no other one
            gc.set_threshold(*before)
    if not _frozen and gc.get_freeze_count():
        _frozen.append(True)
    if not _frozen:
        try:
            gc.freeze()
        finally:
            gc.unfreeze()


def _await_imports() -> None:
    """Let other threads end their `import` statements, which know nothing of `first_use`."""
    wait_while_others_import(first_use.release, first_use.acquire)


Work = Callable[[], object]


class _Fork:
    """A fork under way: the hooks that were called before it, and whether `first_use` was taken."""

    __slots__ = ("begun", "taken")

    def __init__(self) -> None:
        self.begun: list[tuple[Work, Work, Work]] = []
        self.taken: list[bool] = []


_hooks: list[tuple[Work, Work, Work]] = []


class _Forks(threading.local):
    """The forks that a thread has under way: one within the other, where a finaliser forks."""

    def __init__(self) -> None:
        self.all: list[_Fork] = []
        self.interrupted = False


_forks = _Forks()


def _interruptible(work: Work) -> Work:
    """A hook before forks that Ctrl-C ends. As CPython drops what hooks raise, it comes again."""

    def hook() -> None:
        try:
            work()
        except KeyboardInterrupt:
            _forks.interrupted = True

    return hook


def around_forks(before: Work, after_in_parent: Work, after_in_child: Work) -> None:
    """Have these called around every fork of the process, in which `first_use` is held.

    They are called in the order of their registration after a fork, and in the reverse of it
    before. That counts them as they are once `first_use` is held: the interpreter asks who is
    registered before it waits for that, while another thread may import a module, register what
    that needs, and take its lock. What an import statement registers later still is called in the
    child alone.
    """
    _hooks.append((before, after_in_parent, after_in_child))


def before_forks(work: Work) -> None:
    """Have `work` called before a fork takes any lock, so that it may wait for other threads."""
    if hasattr(os, "register_at_fork"):  # the last that is registered is called first
        os.register_at_fork(before=_interruptible(work))


def in_child(work: Work) -> None:
    """Have `work` called in every forked child, in its place among the hooks of `around_forks`."""
    around_forks(bool, bool, work)


def give_back(lock: Reentrant) -> None:
    """Release a lock after a fork in the parent; an interrupt may have come before it was taken."""
    if lock._is_owned():
        lock.release()


def renew(lock: Reentrant) -> None:
    """Free a lock in a forked child, whichever thread of the parent's held it."""
    if lock._is_owned():
        lock.release()
    else:
        lock._at_fork_reinit()


def _call_each(works: Iterable[Work]) -> None:
    """Call all of them; then raise what one of them raised."""
    raised: BaseException | None = None
    for work in works:
        try:
            work()
        except BaseException as error:  # no other is to be left out for it
            raised = error
    if raised is not None:
        raise raised


def _before_fork() -> None:
    fork = _Fork()
    _forks.all.append(fork)
    fork.taken.extend(filter(first_use.acquire, (True,)))  # taken and noted in one call
    _await_imports()
    hooks = _hooks[::-1]

    def begin(hook: tuple[Work, Work, Work]) -> None:
        fork.begun.append(hook)
        hook[0]()

    _call_each([partial(begin, hook) for hook in hooks])


def _begin_late() -> None:
    """Begin a fork that began before there were hooks: those that end it will be called."""
    _before_fork()
    if not logging._lock._is_owned():  # type: ignore[attr-defined]  # which logging's releases
        logging._lock.acquire()  # type: ignore[attr-defined]


def _after_fork(place: int) -> None:
    """In the parent, whose hooks stand at `place` 1, or in the child, at 2."""
    fork = _forks.all.pop() if _forks.all else _Fork()  # it began before there were hooks
    called = fork.begun[::-1]
    if place == 2:  # what came too late to be called before
        called += [hook for hook in _hooks if hook not in called]
    try:
        _call_each([hook[place] for hook in called])
    finally:
        if fork.taken:
            give_back(first_use)
        if _forks.interrupted and place == 1:  # another thread does it, when the hooks are over
            start_new_thread(pthread_kill, (threading.get_ident(), SIGINT))
        _forks.interrupted = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_interruptible(_before_fork),
        after_in_parent=partial(_after_fork, 1),
        after_in_child=partial(_after_fork, 2),
    )
    begins.append((lambda: bool(_forks.all), _begin_late))


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
