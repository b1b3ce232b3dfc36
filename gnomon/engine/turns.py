"""A worker's turns by native code: settle what it ran, take what is next, run it.

See `native_push.py`. They go on as long as all is usual: functions without a device of their own,
no failure on what they read or write, no thread in the midst of an entry, something else pending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.engine.job import READY, SYNC, Job
from gnomon.engine.native_push import call_function, is_quiet, push, push_sync
from gnomon.engine.state import EngineState, admit, is_awaited, leave, send_ordinary
from gnomon.engine.thread import ThreadState
from gnomon.engine.work_queue import WorkQueue, wake_one
from gnomon.ground.collector import resting
from gnomon.native.serve import methods
from gnomon.native.words import keep_alive, native
from gnomon.runtime.once import once
from gnomon.runtime.statements.fields import lock_owner, readable

TURNS = 64  # functions in C do not give other threads a chance

#: `turns(engine, work_queue, state)`
Turns = Callable[[Any, WorkQueue, ThreadState], Any]


@native
def _is_calm(engine: EngineState, work_queue: WorkQueue) -> bool:
    """Whether all is usual for a worker."""
    if not is_quiet(engine) or engine._observer is not None or engine._ready:
        return False
    if work_queue.orphaned or work_queue.closed:
        return False
    return not work_queue.urgent and not work_queue.short


@native
def _is_settled(engine: EngineState, work_queue: WorkQueue, state: ThreadState) -> bool:
    """Settle what a worker ran last; whether Python has nothing to do now."""
    if not _is_calm(engine, work_queue):
        return False
    done = state.done
    if done is None:
        return True
    if engine._pending < 2 or done.state != READY or is_awaited(done):
        return False
    leave(engine, done)
    send_ordinary(engine)
    state.done = None
    return True


@native
def _taken(engine: EngineState, work_queue: WorkQueue) -> Job | None:
    """What is next for a worker. It makes nothing, so no collection begins."""
    normal = work_queue.normal
    count = len(normal)
    if count == 0 or not _is_calm(engine, work_queue):
        return None
    job = normal[0]
    if count > 1:
        wake_one(work_queue)
    del normal[0]
    return job


@native
def _is_plain(engine: EngineState, job: Job) -> bool:
    """Whether native code may run a job: no failure lies on what it reads or writes.

    A job holds its variables while it runs, so no other puts a failure on one, or heals it.
    """
    if job.kind != SYNC or job.ctx is not None or engine._observer is not None:
        return False
    if any(var.failure is not None for var in job.const):
        return False
    return all(var.failure is None for var in job.mutate)


@native
def turns(engine: EngineState, work_queue: WorkQueue, state: ThreadState) -> object:
    """A worker's turns: settle what it ran, take what is next, run it, as long as all is usual.

    What it ran and did not settle is `state.done`. It answers a job that it took and leaves to
    Python to run, which is `state.done` too; None where Python is to look after the engine's state;
    True where it only gives other threads a chance. What a function raises, it raises; `state.job`
    is that function's.
    """
    for _ in range(TURNS):
        left = state.done
        with resting():  # where memory lacks, Python does it again
            settled = _is_settled(engine, work_queue, state)
        keep_alive(left)
        left = None  # its finalisers may wait: nothing is in hand
        if not settled:
            return None
        job = _taken(engine, work_queue)
        if job is None:
            return None
        if not _is_plain(engine, job):
            state.done = job
            return job
        job.outer = None
        state.job = job
        call_function(job, engine._cpu_context)
        state.done = job
        state.job = None
        job = None
    return True


def in_python(engine: Any, work_queue: WorkQueue, state: ThreadState) -> None:
    """The turns of a worker where there is no native code: none."""


@once
def native_turns(kind: Any) -> Turns:
    """From now on engines push by native code, where there may be such; a worker's turns."""
    if not readable() or lock_owner() is None:
        return in_python
    names = {"push_sync": push_sync, "push": push, "_hold": admit, "_let_go": leave}
    answer: Turns
    *made, answer = methods(*[(kind, f) for f in names.values()], (kind, turns))
    if answer is turns:
        return in_python
    for name, method in zip(names, made, strict=True):
        setattr(kind, name, method)
    return answer
