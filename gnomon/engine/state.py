"""What stands in the engine's state, and its changes: who holds or awaits which variable.

These functions are native ones: methods in Python call them, and so do native pushes and workers'
turns, without a lock (see `native_push.py`). Python runs them as they stand where there is no
native code yet. There an interrupt may come at any call, and at any way back in a loop. So what
must not be torn apart, as a place in a queue and the number that counts it, changes without a call
in between; the rest can be broken off anywhere and done again. Memory may lack for any number or
place that is new: what must not be torn apart is made before the first of it changes.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from gnomon.engine.job import DONE, SYNC, WAITING, Job, RunContext
from gnomon.engine.var import NO_JOBS, Var
from gnomon.engine.work_queue import WorkQueue, put_ordinary
from gnomon.ground.lock import Reentrant
from gnomon.ground.record import inner, put, put_all
from gnomon.native.words import Boxed, native

if TYPE_CHECKING:
    from _thread import LockType

    from gnomon.context import Context
    from gnomon.engine.bulk import Bulk


@inner
class EngineState:
    """What stands in the engine's state, in slots, where native code finds it."""

    __slots__ = (
        "_base",
        "_behind",
        "_brief",
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
        "_queued",
        "_ready",
        "_settled",
        "_sleepers",
        "_usual",
        "_work_queue",
    )  # fmt: skip

    _base: int  # the most bytes that were in use while no operator was pending
    _behind: deque[Job]  # what runs behind the program, in its order
    _brief: object | None  # the kernel of `run_brief` that runs now: no fast path joins it
    _bulk: Bulk | None  # what a bulk scope holds back
    _bulking: bool  # whether any thread asks for bulk
    _cpu_context: RunContext
    _deferred: deque[partial[None]]  # what came in the middle of an entry; of a job each
    _hiring: list[WorkQueue]  # queues that lack threads
    _late: Job | None  # what `push_later` holds back
    _local: threading.local
    _lock: Reentrant
    _observer: Callable[[str, Context, float, float], None] | None
    _pending: int
    _poisoned: bool  # whether any function ever failed; native code asks the variables
    _queued: weakref.WeakSet[Job]  # operators' jobs that are pending and not behind
    _ready: deque[Job]  # jobs that hold all their variables, and are to be sent on their way
    _settled: int
    _sleepers: list[LockType]  # gates of those who wait for everything
    _usual: bool  # whether it is of a class of gnomon's; others may do things their own way
    _work_queue: WorkQueue | None  # the processor's, of ordinary work


@native
def admit(state: EngineState, job: Job) -> bool:
    """Enter a job with its variables; whether it holds all of them at once."""
    blockers = 0
    pending: Boxed = state._pending + 1
    operator = job.operator
    if operator is not None:
        active: Boxed = operator.active + 1
        operator.active = active
    job.state = WAITING
    state._pending = pending
    for var in job.const:
        if var.writer is not None or var.queue:
            blockers += 1
            _enqueue(var, (job,))
        else:
            _read(var, job)
    for var in job.mutate:
        if var.writer is None and not var.queue and (var.readers is NO_JOBS or not var.readers):
            put(var, "writer", job)
        else:
            blockers += 1
            _enqueue(var, job)
    job.blockers = blockers
    return blockers == 0


@native
def leave(state: EngineState, job: Job) -> None:
    """Take a job out of its variables and count it as done; who may run then is ready."""
    ready = state._ready
    for var in job.const:
        readers = var.readers
        if readers is not NO_JOBS:
            readers.discard(job)
        if var.queue:
            promote(var, ready)
    for var in job.mutate:
        if var.writer is job:
            version: Boxed = var.version + 1
            put_all(var, ("version", "writer"), (version, None))  # nothing interrupts that
        if var.queue:
            promote(var, ready)
    if job.state != DONE:
        pending: Boxed = state._pending - 1
        settled: Boxed = state._settled + 1
        operator = job.operator
        if operator is not None:
            active: Boxed = operator.active - 1
            operator.active = active
        job.state = DONE
        state._pending = pending
        state._settled = settled


@native
def promote(var: Var, ready: deque[Job]) -> None:
    """Admit who may enter from the head of a queue; `ready` gets jobs that nothing blocks now."""
    queue = var.queue
    while queue:
        entry: object = queue[0]
        if var.writer is not None and var.writer is not entry:
            return
        if type(entry) is tuple:
            job = cast(Job, entry[0])
            _read(var, job)
        elif var.readers is not NO_JOBS and var.readers:
            return
        else:
            job = cast(Job, entry)
            put(var, "writer", job)  # interrupted here, it is found in both places
        blockers: Boxed = job.blockers - 1
        if job.blockers == 1:
            ready.append(job)  # twice does no harm, where it is done again
        del queue[0]  # no gap for an interrupt, unlike popleft
        job.blockers = blockers


@native
def send_ordinary(state: EngineState) -> bool:
    """Send ready jobs to the processor's work queue, up to one that has another way to go.

    Whether there was none.
    """
    ready = state._ready
    work_queue = state._work_queue
    while ready:
        job = ready[0]
        if work_queue is None or job.state != WAITING or not is_ordinary(job):
            return False
        put_ordinary(work_queue, job)
        del ready[0]
    return True


@native
def is_ordinary(job: Job) -> bool:
    """Whether a job is for the ordinary workers of the processor, and in no hurry."""
    priority: object = job.priority
    if type(priority) is not int or priority != 0:
        return False
    return job.kind == SYNC and job.ctx is None and not job.copy


@native
def is_awaited(job: Job) -> bool:
    """Whether a thread waits until no push of a job's operator is active."""
    operator = job.operator
    return operator is not None and len(operator.gates) > 0


@native
def _enqueue(var: Var, entry: object) -> None:
    """Put a job that is not admitted at the end of the queue: a reader in a tuple."""
    if var.queue is None:
        put(var, "queue", deque())
    queue = cast("deque[object]", var.queue)
    queue.append(entry)


@native
def _read(var: Var, job: Job) -> None:
    """Have a job among the readers."""
    readers = var.readers
    if readers is NO_JOBS:
        put(var, "readers", {job})
    else:
        readers.add(job)
