"""The engine's state: which job holds or awaits which variable, and what happens when one is done.

State, all of it under one lock: `pending` counts the jobs that are pushed and not done, `settled`
those that are done; `failures` are exceptions that were not reported; `open` are asynchronous
jobs whose function has returned. A job is *waiting* until it holds all its variables, then
*ready*, then *done*.

An interrupt (Ctrl-C) can come at any call, and at any way back in a loop, of the main thread, in
an entry of this state too, and once more while the first is cleaned up after. So what must not be
torn apart, as a place in a queue and the number that counts it, changes without a call in between;
the rest can be broken off anywhere and done again; and a thread that is interrupted has it done
again by `retry_until_done`, which ends when it is done. The lock can be taken twice by one thread,
for a finaliser or signal handler that pushes in the middle of an entry: its work is put off to the
entry's end.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from gnomon.engine.failure import Failure
from gnomon.engine.job import (
    DONE,
    HERE,
    INLINE,
    NEW,
    WAIT,
    WAITING,
    Job,
)
from gnomon.engine.retry_until_done import retry_until_done
from gnomon.engine.thread import ThreadState, open_gates
from gnomon.lock import reentrant
from gnomon.record import put

if TYPE_CHECKING:
    from _thread import LockType

    from gnomon.context import Context
    from gnomon.engine.bulk import Bulk
    from gnomon.engine.job import RunContext
    from gnomon.engine.work_queue import WorkQueue


class EngineState:
    """What stands in the engine's state, in slots, where native code finds it."""

    __slots__ = (
        "_behind",
        "_briefly",
        "_bulk",
        "_bulking",
        "_cpu_context",
        "_deferred",
        "_hiring",
        "_late",
        "_local",
        "_lock",
        "_observer",
        "_pending",
        "_poisoned",
        "_ready",
        "_settled",
        "_sleepers",
        "_work_queue",
    )  # fmt: skip

    _behind: deque[Job]  # what runs behind the program, in its order
    _briefly: bool  # kernels of `run_brief` are not to be joined by others now
    _bulk: Bulk | None  # what a bulk scope holds back
    _bulking: bool  # whether any thread asks for bulk
    _cpu_context: RunContext
    _deferred: deque[Callable[[], None]]  # what came in the middle of an entry
    _hiring: list[WorkQueue]  # queues that lack threads
    _work_queue: WorkQueue | None  # the processor's, of ordinary work
    _late: Job | None  # what `push_later` holds back
    _observer: Callable[[str, Context, float, float], None] | None
    _poisoned: bool  # whether any function ever failed; native code asks the variables
    _sleepers: list[LockType]  # gates of those who wait for everything


class Bookkeeping(EngineState, ABC):
    """Admission and settlement of jobs; an engine says where they run."""

    def __init__(self) -> None:
        self._observer = None
        self._retry_until_done = retry_until_done()
        self._briefly = self._poisoned = False
        self._clear()

    def _clear(self) -> None:
        """Begin with empty state and no thread known."""
        self._lock = reentrant()
        self._pending = 0
        self._settled = 0
        self._ready: deque[Job] = deque()
        self._behind = deque()
        self._bulk = self._late = None
        self._sleepers = []
        self._failures: list[Failure] = []
        self._open: set[Job] = set()
        self._deferred = deque()
        self._local = threading.local()
        self._states: weakref.WeakSet[ThreadState] = weakref.WeakSet()

    @abstractmethod
    def _dispatch(self, job: Job) -> None:
        """Send a ready job to where it runs, and mark it ready. Lock held."""

    def _rouse(self) -> None:
        """See that a thread comes for each job that lies ready. Lock held."""

    def _state(self) -> ThreadState:
        """What is known of this thread."""
        try:
            state: ThreadState = self._local.state
        except AttributeError:
            state = self._local.state = ThreadState()
            with self._lock:
                self._states.add(state)
        return state

    # --- entries; the lock is held --------------------------------------------------------------

    def _admit(self, job: Job) -> bool:
        """Enter a job with its variables; whether it holds all of them at once."""
        blockers = 0
        try:
            job.state = WAITING
            self._pending += 1
            if job.operator is not None:
                job.operator.active += 1
            for var in job.const:
                if var.queue or var.writer is not None:
                    blockers += 1
                    var.enqueue((job,))
                else:
                    var.add_reader(job)
            for var in job.mutate:
                if var.queue:
                    blockers += 1
                    var.queue.append(job)
                elif var.writer is None and not var.readers:
                    put(var, "writer", job)
                else:
                    blockers += 1
                    var.enqueue(job)
        except BaseException:
            self._retry_until_done(self._withdraw, job)
            raise
        job.blockers = blockers
        return not blockers

    def _settle(self, job: Job, backlog: deque[Job] | None = None) -> None:
        """A job is done: it leaves its variables, and who may run now is sent on its way.

        Inline jobs go to `backlog` where there is one: this thread runs them next.
        """
        try:
            self._leave(job)
            if self._ready:
                self._dispatch_ready(backlog)
            if not self._pending and self._sleepers:
                self._wake_sleepers()
        except BaseException:
            self._retry_until_done(self._leave_for_good, job)
            raise

    def _leave_for_good(self, job: Job) -> None:
        """A job is done, though an interrupt said otherwise."""
        self._leave(job)
        self._put_right()

    def _put_right(self) -> None:
        """Do what an entry may have left undone after whose it was."""
        self._dispatch_ready(None)
        if not self._pending:
            self._wake_sleepers()
        self._rouse()

    def _leave(self, job: Job) -> None:
        """Take a job out of its variables and count it as done."""
        ready = self._ready
        for var in job.const:
            if var.readers:
                var.readers.discard(job)
            if var.queue and not var.readers:
                var.promote(ready)
        for var in job.mutate:
            if var.writer is job:
                # in one call, which nothing interrupts
                any(map(put, (var, var), ("version", "writer"), (var.version + 1, None)))
            if var.queue:
                var.promote(ready)
        operator = job.operator
        if job.state != DONE:
            job.state = DONE
            self._pending -= 1
            self._settled += 1
            if operator is not None:
                operator.active -= 1
        if operator is not None and operator.gates:
            operator.wake_sleepers()

    def _dispatch_ready(self, backlog: deque[Job] | None) -> None:
        """Send every job that nothing blocks any more to where it runs."""
        ready = self._ready
        while ready:
            job = ready[0]
            if job.kind == WAIT:
                self._leave(job)
                job.open_gate()
            elif job.state == WAITING:
                if job.kind == INLINE and backlog is not None:
                    job.state = HERE
                    backlog.append(job)
                else:
                    self._dispatch(job)
            ready.popleft()

    def _wake_sleepers(self) -> None:
        """Nothing is pending: wake those who wait for that."""
        open_gates(self._sleepers)

    def _withdraw(self, job: Job) -> None:
        """Take out a job at whose entry an interrupt came."""
        if job.state != NEW:
            for var in (*job.const, *job.mutate):
                var.remove(job)
                var.promote(self._ready)
            self._leave(job)
        self._put_right()

    def _take_out(self, job: Job) -> None:
        """As `_withdraw`, for who does not hold the lock."""
        with self._lock:
            self._withdraw(job)
