"""Work queues: ready jobs of one device and kind of work, and the threads that take them.

Policy. Order: urgent jobs (priority above 0, highest first), gnomon's own short kernels, the
ordinary ones in order of arrival, the rest (below 0). Waking a sleeping thread costs a system
call, and under one interpreter lock mostly a wait besides; so one wake-up at a time is on its way,
and a thread that wakes and finds more than it takes wakes the next one itself. A thread that
sleeps in a wait of its own gives its place to an extra one until it is back.

All of it happens under the engine's lock.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import TYPE_CHECKING

from gnomon.engine.gates import shut_gate
from gnomon.engine.job import INLINE, READY, WAITING, Job
from gnomon.ground.record import inner
from gnomon.native.words import native

if TYPE_CHECKING:
    from _thread import LockType

_order = itertools.count()
NOT_CALLED = (MemoryError, RecursionError)  # what a call raises that does nothing


@inner
class WorkQueue:
    """Ready jobs and their threads; `limit` is how many run at once."""

    __slots__ = (
        "blocked",
        "closed",
        "ended",
        "idle",
        "later",
        "limit",
        "name",
        "normal",
        "orphaned",
        "short",
        "threads",
        "urgent",
        "waking",
    )

    closed: bool
    idle: list[LockType]  # the gates of sleeping threads
    later: list[tuple[int, int, Job]]
    normal: deque[Job]
    orphaned: bool  # it was a parent process's
    short: deque[Job]
    urgent: list[tuple[int, int, Job]]
    waking: bool

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.normal = deque()
        self.short = deque()
        self.urgent = []
        self.later = []
        self.idle = []
        self.waking = False
        self.threads = 0
        self.blocked = 0  # threads asleep in a wait of their own
        self.closed = False
        self.ended = shut_gate()  # opened by the last thread of a closed work_queue
        self.orphaned = False

    def put(self, job: Job) -> None:
        """Take in a ready job and see that a thread comes for it."""
        if job.kind != INLINE and not job.priority:
            put_ordinary(self, job)
            return
        try:
            if job.kind == INLINE:
                job.state = READY  # right before the append: an interrupt finds both or neither
                self.short.append(job)
            else:
                heap = self.urgent if job.priority > 0 else self.later
                entry = (-job.priority, next(_order), job)
                job.state = READY
                heapq.heappush(heap, entry)
        except NOT_CALLED:
            job.state = WAITING
            raise
        wake_one(self)

    def wake(self) -> None:
        """Wake a thread where there is work, one that sleeps, and none that is waking up."""
        if self:
            wake_one(self)

    def take(self) -> Job | None:
        """The job that is next, or None."""
        if self.urgent:
            return heapq.heappop(self.urgent)[2]
        if self.short:
            return self.short.popleft()
        if self.normal:
            return self.normal.popleft()
        return heapq.heappop(self.later)[2] if self.later else None

    def __bool__(self) -> bool:
        return bool(self.normal or self.short or self.urgent or self.later)

    def jobs(self) -> list[Job]:
        """Everything that lies here."""
        return [
            *self.short,
            *self.normal,
            *(e[2] for e in self.urgent),
            *(e[2] for e in self.later),
        ]

    def awake(self, gate: LockType) -> None:
        """The thread that sleeps behind `gate` is up again."""
        self.waking = False
        self.idle.remove(gate)

    def close(self) -> None:
        """Have every thread end when there is nothing left to take."""
        self.closed = True
        for gate in self.idle:
            if gate.locked():
                gate.release()

    @property
    def missing(self) -> int:
        """How many threads to start; below 0: how many are too many."""
        return self.limit + self.blocked - self.threads


@native
def put_ordinary(work_queue: WorkQueue, job: Job) -> None:
    """Take in a ready job of no priority, and see that a thread comes for it."""
    job.state = READY
    try:
        work_queue.normal.append(job)
    except NOT_CALLED as error:
        job.state = WAITING
        raise error
    wake_one(work_queue)


@native
def wake_one(work_queue: WorkQueue) -> None:
    """Wake a thread that sleeps, unless one is waking up."""
    if work_queue.idle and not work_queue.waking:
        work_queue.waking = True
        try:
            work_queue.idle[-1].release()
        except NOT_CALLED as error:
            work_queue.waking = False
            raise error
