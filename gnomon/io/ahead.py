"""Threads that make calls ahead of the program, which waits for what each of them gives.

A handler that raises, as Ctrl-C does, may come amid any step of the program's thread. Those of
`concurrent.futures` and `multiprocessing.pool` take locks there by code in Python: a handler in the
midst of that leaves a lock taken for good, for which the other threads and the exit of the process
wait without an end. Here that thread takes none but a gate, by one call made in C.

A future is *to begin*, under way, or *done*. To begin it twice does no harm: one thread makes the
call. If no code holds it any more before a thread has begun it, it is dropped; so is, at the exit,
all that has not begun. What is under way then is waited for some seconds: it may wait for a disk
or a network itself.
"""

from __future__ import annotations

import atexit
import math
import queue
import time
import weakref
from _thread import start_new_thread
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from gnomon.engine.gates import shut_gate
from gnomon.ground.lock import in_child

P = ParamSpec("P")
T = TypeVar("T")

_LOOK = 0.1  # seconds between two looks: an interrupt may have come to the gate before its waiter
_PATIENCE = 5.0  # seconds for which the exit waits for calls that are under way


class Future(Generic[T]):
    """A call, and from its end on what it gave."""

    __slots__ = ("__weakref__", "_call", "_gate", "_outcome", "threads")

    threads: Ahead  # which are to make the call; they live as long as it

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = [call]
        self._gate = shut_gate()
        self._outcome: tuple[Any, BaseException | None] | None = None

    @property
    def begun(self) -> bool:
        """Whether a thread has begun it."""
        return not self._call

    def run(self) -> None:
        """Make the call, unless a thread has begun it."""
        try:
            call = self._call.pop()
        except IndexError:
            return
        self._outcome = _outcome(call)
        self._gate.release()

    def wait(self, timeout: float = math.inf) -> bool:
        """Sleep until it is done, or so many seconds; whether it is done."""
        until = time.monotonic() + timeout
        while self._outcome is None and (left := until - time.monotonic()) > 0:
            self._gate.acquire(timeout=min(left, _LOOK))
        return self._outcome is not None

    def result(self) -> T:
        """What the call gave, as soon as it is done; what it raised is raised."""
        while self._outcome is None:
            self.wait()
        answer, error = self._outcome
        if error is not None:
            raise error
        return answer  # type: ignore[no-any-return]  # of the call, which gives a T


def _outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What a call gives, or raises. An error keeps this frame, which knows of no future."""
    try:
        return call(), None
    except BaseException as error:
        return None, error


Begun = queue.SimpleQueue[weakref.ref[Any]]  # futures, and what they hold, when that is gone


class Ahead:
    """So many threads, which make the calls of futures in the order in which they are begun.

    >>> Ahead(2).begin(Future(lambda: 6 * 7)).result()
    42
    """

    __slots__ = ("__weakref__", "_begun")

    def __init__(self, threads: int) -> None:
        self._begun: Begun = queue.SimpleQueue()
        mine = weakref.ref(self, self._begun.put)  # made in C: no interrupt keeps a thread alive
        for _ in range(threads):
            start_new_thread(_serve, (mine, self._begun))

    def begin(self, future: Future[T]) -> Future[T]:
        """The future, which a thread begins as soon as one is free."""
        future.threads = self
        self._begun.put(weakref.ref(future))
        return future


_under_way: set[Future[Any]] = set()
_exits: list[bool] = []  # filled when the process ends


def _serve(threads: weakref.ref[Ahead], begun: Begun) -> None:
    """A thread's life."""
    while True:
        held = begun.get()
        if threads() is None:
            begun.put(held)  # for the next of them
            return
        future = held()
        if future is None:
            continue
        _under_way.add(future)
        if not _exits:  # asked when the exit knows of it
            future.run()
        _under_way.discard(future)
        del future  # and with it what it gave


def _at_exit() -> None:
    _exits.append(True)
    until = time.monotonic() + _PATIENCE
    for future in list(_under_way):
        if future.begun:
            future.wait(until - time.monotonic())


in_child(_under_way.clear)  # a forked child has none of the threads
atexit.register(_at_exit)
