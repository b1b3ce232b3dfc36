"""What the engine knows of a thread: what runs on it, and what it has to do next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from gnomon.engine.gates import shut_gate
from gnomon.engine.job import DONE, Job
from gnomon.engine.var import Var
from gnomon.engine.work_queue import WorkQueue
from gnomon.ground.record import inner


@inner
class ThreadState:
    """One thread, as one engine sees it."""

    __slots__ = (
        "__weakref__",
        "backlog",
        "bouncing",
        "bulk_size",
        "catching_up",
        "done",
        "gate",
        "hand",
        "job",
        "relieved",
        "work_queue",
    )  # fmt: skip

    backlog: deque[Job]  # inline jobs it made ready, to be run next
    bouncing: bool  # whether it works that backlog off
    bulk_size: int
    catching_up: bool  # whether it does what was put off
    done: Job | None  # a worker's: what it took, and did not settle yet
    hand: list[Job]  # those of its backlog that it took, and did not settle yet
    job: Job | None  # what runs on it now; `job.outer` is what that runs in
    relieved: list[WorkQueue]  # which got an extra thread while this one waits
    work_queue: WorkQueue | None  # a worker's

    def __init__(self) -> None:
        self.job = self.work_queue = self.done = None
        self.backlog = deque()
        self.hand = []
        self.bouncing = self.catching_up = False
        self.bulk_size = 0
        self.gate = shut_gate()
        self.relieved = []

    def running(self) -> list[Job]:
        """The jobs whose functions are on the thread's stack, the innermost first.

        Those that a handler settled after their work was over do not count.
        """
        jobs, job = [], self.job
        while job is not None:
            if job.state != DONE:
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

    def relieve(self, queues: Iterable[WorkQueue], hiring: list[WorkQueue]) -> None:
        """Ask for an extra thread in each queue that has work and no idle one. Lock held."""
        for work_queue in queues:
            if work_queue and not work_queue.idle:
                work_queue.blocked += 1
                self.relieved.append(work_queue)
                hiring.append(work_queue)

    def take_back(self) -> None:
        """The thread waits no more: those queues need no extra threads. Lock held."""
        while self.relieved:
            self.relieved[-1].blocked -= 1
            del self.relieved[-1]
