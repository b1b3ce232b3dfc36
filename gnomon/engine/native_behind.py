"""Pushes of long native work by native code: a task that was in the stream goes there again.

As the pushes of `native_push.py` it needs no lock, and leaves to Python, with nothing done,
whatever is not usual: a thread amidst an entry, work held back, observers, variables that a job
queues for, much that is pending. What is over is settled by Python.
"""

from __future__ import annotations

from typing import Any, cast

from gnomon.engine.failure import push_site
from gnomon.engine.job import BEHIND, INLINE, Job, make_job
from gnomon.engine.native_push import is_quiet
from gnomon.engine.state import EngineState, admit
from gnomon.engine.var import Var
from gnomon.native.words import native
from gnomon.runtime.devices.pool import in_use, pool_of
from gnomon.runtime.execution import stream
from gnomon.runtime.execution.program import is_watched
from gnomon.runtime.execution.stream import Task, is_entered, is_known_available

FREE = 16 << 20  # bytes that work behind may hold, however little is in use
_MEMORY = pool_of("cpu")


@native
def is_coming(var: Var) -> bool:
    """Whether no job queues for a variable, and its value is there, or is written behind the
    program."""
    writer: object = var.writer
    if var.failure is not None:
        return False
    if writer is not None and cast(Job, writer).state != BEHIND:
        return False
    return var.queue is None or not var.queue


@native
def most_memory(base: int) -> int:
    """The most bytes that may be in use where so many were when the stream was last empty."""
    return base + max(base * 3 >> 2, FREE)


@native
def goes_behind(engine: EngineState) -> bool:
    """Whether all is as usual for work to go behind the program; what is over there is settled."""
    if not engine._usual or not is_known_available() or is_watched():
        return False
    if len(engine._behind) > 0:
        cast(Any, engine)._collect()
    if not is_quiet(engine) or engine._sleepers or len(engine._behind) >= stream.ROOM:
        return False
    used = in_use(_MEMORY)
    if len(engine._behind) == 0:
        engine._base = used
    return used <= most_memory(engine._base)


@native
def entered_behind(
    engine: EngineState, fn: object, const: tuple[Var, ...], mutate: tuple[Var, ...], name: object,
    task: Task,
) -> bool:  # fmt: skip
    """Whether a task was entered; it reads and writes these variables, which were looked at."""
    job = make_job(fn, INLINE, const, mutate, None, 0, name, False, push_site())
    job.task = task
    try:
        admit(engine, job)
        job.state = BEHIND
        engine._behind.append(job)
        if is_entered(task):
            return True
    except BaseException as error:
        cast(Any, engine)._call_back(job, task)
        raise error
    cast(Any, engine)._call_back(job, task)
    return False
