"""Workspaces: memory that steps work in, which templates have for the time of a run alone.

While a template makes its steps, all temporaries are parts of one workspace, at stand-in addresses:
so it learns how much a run needs, and which words say where. A run takes memory that lies spare, or
the pool's. Runs that follow each other may use the same memory again and again, without a word
written: those that a lock keeps apart, Python's own or the engine's, and those of the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import NamedTuple, TypeVar

from gnomon.runtime.devices import pool
from gnomon.runtime.devices.pool import Storage

ALIGNED = 64
NO_MEMORY = 1 << 47  # no program has memory from here on: stand-ins are there
KEPT_BYTES = 16 << 20  # of a workspace that is kept for others
T = TypeVar("T")


class Part(NamedTuple):
    """A temporary of a workspace, at a stand-in address."""

    address: int
    nbytes: int


class Workspace:
    """The parts that were taken from a stand-in address on, and the bytes of all.

    >>> workspace = Workspace(1 << 48)
    >>> workspace.filled_by(lambda: working_memory(100).address - (1 << 48))
    0
    >>> workspace.nbytes
    128
    """

    __slots__ = ("address", "nbytes")

    def __init__(self, address: int) -> None:
        self.address, self.nbytes = address, 0

    def part(self, nbytes: int) -> Part:
        """A part of so many bytes behind those before."""
        part = Part(self.address + self.nbytes, nbytes)
        self.nbytes += -(-nbytes // ALIGNED) * ALIGNED
        return part

    def filled_by(self, make: Callable[[], T]) -> T:
        """What `make` gives, whose temporaries are parts of this workspace.

        No exception, wherever it comes from, leaves the thread with this workspace.
        """
        return copy_context().run(_filled, self, make)


_present: ContextVar[Workspace | None] = ContextVar("workspace", default=None)


def _filled(workspace: Workspace | None, make: Callable[[], T]) -> T:
    _present.set(workspace)
    return make()


def without_workspace(make: Callable[[], T]) -> T:
    """What `make` gives, whose temporaries are the pool's even where a template is being made.

    A signal's handler or a finalizer may run between any two instructions of that. Statements on
    memory, and executors, whose steps are of no template, make them by this.
    """
    return make() if _present.get() is None else copy_context().run(_filled, None, make)


def working_memory(nbytes: int) -> Storage | Part:
    """Memory of the processor for a step to work in."""
    workspace = _present.get()
    return pool.allocate(nbytes) if workspace is None else workspace.part(nbytes)


class Reused:
    """Memory for runs of which each begins when the one before is over.

    It is kept for good, and at least doubled where it is too small.
    """

    __slots__ = ("_storages",)

    def __init__(self) -> None:
        self._storages: list[Storage] = []

    def of(self, nbytes: int) -> Storage:
        """At least so many bytes."""
        latest = self._storages[-1] if self._storages else None
        if latest is None or latest.nbytes < nbytes:
            latest = pool.allocate(max(nbytes, 2 * latest.nbytes if latest else 0))
            self._storages.append(latest)
        return latest  # not the last of all, which may be another thread's, and smaller


class Lent:
    """Memory for runs that may be at the same time: there is as much as ran at once, for the next.

    The pool itself takes some 5 us for a block, where it has many sizes.
    """

    __slots__ = ("_idle",)

    def __init__(self) -> None:
        self._idle: list[Storage] = []

    def take(self, nbytes: int) -> Storage:
        """At least so many bytes; what is not given back is the pool's once nothing holds it."""
        try:
            storage = self._idle.pop()
        except IndexError:
            return pool.allocate(nbytes)
        return storage if storage.nbytes >= nbytes else pool.allocate(nbytes)

    def give(self, storage: Storage) -> None:
        """Leave memory of `take` to others, unless it is much."""
        if storage.nbytes <= KEPT_BYTES:
            self._idle.append(storage)


RUN_MEMORY = Lent()  #: of any run
LOCK_MEMORY = Reused()  #: of what runs from begin to end while one thread has Python's lock
BRIEF_MEMORY = Reused()  #: of brief runs, of which the engine's lock lets one be at a time
STREAM_MEMORY = Reused()  #: of tasks of the stream
