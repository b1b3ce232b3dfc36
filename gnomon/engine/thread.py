"""What the engine knows of a thread: what runs on it, and what it has to do next."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _thread import LockType

    from gnomon.engine.job import Job
    from gnomon.engine.var import Var
    from gnomon.engine.work_queue import WorkQueue


def shut_gate() -> LockType:
    """A lock that is taken: a thread that acquires it sleeps until another releases it."""
    gate = threading.Lock()
    gate.acquire()
    return gate


def open_gates(gates: list[LockType]) -> None:
    """Wake all who sleep behind gates; no harm in doing it twice, where an interrupt came."""
    while gates:
        if gates[-1].locked():
            gates[-1].release()
        del gates[-1]


class ThreadState:
    """One thread, as one engine sees it."""

    __slots__ = (
        "__weakref__",
        "backlog",
        "bouncing",
        "bulk_size",
        "done",
        "gate",
        "hand",
        "job",
        "relieved",
        "work_queue",
    )  # fmt: skip

    def __init__(self) -> None:
        self.job: Job | None = None  # what runs on it now; `job.outer` is what that runs in
        self.work_queue: WorkQueue | None = None  # a worker's
        self.done: Job | None = None  # a worker's: what it took, and did not settle yet
        self.backlog: deque[Job] = deque()  # inline jobs it made ready, to be run next
        self.hand: list[Job] = []  # those of them that it took, and did not settle yet
        self.bouncing = False  # whether it works that backlog off
        self.bulk_size = 0
        self.gate = shut_gate()
        self.relieved: list[WorkQueue] = []  # which got an extra thread while this one waits

    def running(self) -> list[Job]:
        """The jobs whose functions are on the thread's stack, the innermost first."""
        jobs, job = [], self.job
        while job is not None:
            jobs.append(job)
            job = job.outer
        return jobs

    def unsettled(self) -> list[Job]:
        """All that the thread took, or made ready, and did not settle: a fork asks at any time."""
        jobs = [*self.running(), *self.hand, *self.backlog]
        return jobs if self.done is None else [*jobs, self.done]

    def holds(self, var: Var) -> bool:
        """Whether a function that runs on this thread has declared `var`."""
        return any(var in job.const or var in job.mutate for job in self.running())
