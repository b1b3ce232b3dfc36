"""A versioned variable: who may touch a resource, in push order.

States: *free* (not in use), *read* (`readers` holds jobs), *written* (`writer` is a job). A job
that the state does not admit queues, and while anybody queues every later job queues behind it: a
reader sees each write pushed before it and none pushed after. When the last holder leaves, the head
of the queue enters: one writer, or all readers up to the next writer. A writer that leaves makes
the next `version`.

All of it happens under the engine's lock; the variable itself has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self, cast

from gnomon.ground.record import Frozen, put
from gnomon.native.serve import methods
from gnomon.native.words import native, whole

if TYPE_CHECKING:
    from gnomon.engine.failure import Failure
    from gnomon.engine.job import Job


#: most variables are made, written once and forgotten: a set of its own comes with a reader
NO_JOBS = cast("set[Job]", frozenset())


@whole
class Var(Frozen):
    """A light tag for any resource; make one with `engine.new_variable()`.

    `version` counts the writes that are finished. A variable belongs to the engine that it is
    used with first: two engines do not see each other's functions.

    `pending_readers` are computations that are to read the variable and were not pushed yet. Each
    is called before a write is pushed, and then pushes itself.
    """

    __slots__ = (
        "__weakref__",
        "deleted",
        "failure",
        "name",
        "pending_readers",
        "queue",
        "readers",
        "version",
        "writer",
    )

    deleted: bool
    failure: Failure | None
    name: str | None
    pending_readers: Sequence[Callable[[], object]]
    queue: deque[Job | tuple[Job]] | None  # a writer, or a reader in a tuple
    readers: set[Job]
    version: int
    writer: Job | None

    def __new__(cls, name: str | None = None) -> Self:
        self = object.__new__(cls)
        self._begin(name)
        return self

    def _begin(self, name: str | None) -> None:
        """Set all slots: by native code from now on, where there may be such."""
        (Var._begin,) = methods((Var, begun))  # type: ignore[method-assign]
        self._begin(name)

    def __repr__(self) -> str:
        return f"Var({self.name or hex(id(self))}, version {self.version})"

    def has_value(self) -> bool:
        """Whether there is something that a write leaves as it is where it does not run."""
        return False

    def push_pending_readers(self, but: object = None) -> None:
        """Push all pending readers, since a write is about to be, `but` that of who writes.

        Twice: what was recorded leaves its element-wise operators pending as it is computed, which
        leave nothing. One that is being computed stays, so that a loop until none came may not end.
        """
        for _ in range(2):
            for reader in tuple(self.pending_readers):
                if reader is not but:
                    reader()

    def remove(self, job: Job) -> None:
        """Take a job out wherever it is; harmless where it is not."""
        if self.readers:
            self.readers.discard(job)
        if self.writer is job:
            put(self, "writer", None)
        if self.queue:
            put(self, "queue", deque(x for x in self.queue if job_of(x) is not job))

    def release(self) -> None:
        """No job holds the variable any more, and none queues for it."""
        put(self, "readers", NO_JOBS)
        put(self, "writer", None)
        put(self, "queue", None)

    def last_writer(self) -> Job | None:
        """The last of those who are pushed and are to write the variable, or write it now."""
        for entry in reversed(self.queue or ()):
            if not isinstance(entry, tuple):
                return entry
        return self.writer

    def awaited_by(self, job: Job) -> bool:
        """Whether a job queues here."""
        return any(job_of(entry) is job for entry in self.queue or ())

    def users(self) -> list[Job]:
        """Every job that holds the variable or queues for it."""
        found = [*map(job_of, self.queue or ()), *self.readers]
        return found if self.writer is None else [*found, self.writer]


@native
def begun(var: Var, name: str | None) -> None:
    """Set all slots of a variable."""
    put(var, "readers", NO_JOBS)
    put(var, "writer", None)
    put(var, "queue", None)
    put(var, "failure", None)
    put(var, "version", 0)
    put(var, "deleted", False)
    put(var, "name", name)
    put(var, "pending_readers", ())


@native
def is_free(var: Var) -> bool:
    """Whether a variable is not written, no job queues for it, and it has no failure."""
    if var.writer is not None or var.failure is not None:
        return False
    return var.queue is None or not var.queue


@native
def is_unread(var: Var) -> bool:
    """Whether no job reads a variable now."""
    return var.readers is NO_JOBS or not var.readers


def job_of(entry: Job | tuple[Job]) -> Job:
    """Who stands at a place in a queue."""
    return entry[0] if isinstance(entry, tuple) else entry
