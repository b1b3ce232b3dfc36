"""Pushes of long native work by native code: a task that was in the stream goes there again.

As the pushes of `native_push.py` it needs no lock, and leaves to Python, with nothing done,
whatever is not usual: a thread amidst an entry, work held back, observers, variables that others
than work behind the program use. What is over is settled by native code, too, where nothing else is
pending.
"""

from __future__ import annotations

from typing import Any, cast

from gnomon.engine.failure import push_site
from gnomon.engine.job import BEHIND, INLINE, Job, make_job
from gnomon.engine.native_push import is_quiet
from gnomon.engine.retry_until_done import repair
from gnomon.engine.state import EngineState, admit, is_awaited, leave
from gnomon.engine.var import Var, is_unread
from gnomon.ground.collector import resting
from gnomon.native.serve import Later
from gnomon.native.words import Words, native
from gnomon.runtime.devices.pool import in_use, pool_of
from gnomon.runtime.execution import stream
from gnomon.runtime.execution.program import is_watched
from gnomon.runtime.execution.stream import (
    BEGIN,
    CODE,
    END,
    NUMBER,
    Task,
    is_entered,
    is_known_available,
)

WORTH = 300  # tasks: without native code one takes 40 us more, and compiling that 0.05 s
FREE, MOST = 16 << 20, 1 << 30  # bytes that work behind may hold, however little or much is in use
_MEMORY = pool_of("cpu")
_CALL_BACK = "_call_back"


@native
def _are_all_behind(engine: EngineState) -> bool:
    """Whether all that is pending is behind the program, so that nothing else uses a variable."""
    count = len(engine._behind)
    if engine._pending != count:
        return False
    return count == 0 or engine._behind[0].state == BEHIND  # else it is being settled


@native
def is_coming(engine: EngineState, var: Var) -> bool:
    """Whether work behind the program may read a variable: its value is there, or comes from
    there."""
    writer: object = var.writer
    if var.failure is not None:
        return False
    if _are_all_behind(engine):
        return True
    if writer is not None and cast(Job, writer).state != BEHIND:
        return False
    return var.queue is None or not var.queue


@native
def is_read_there_alone(engine: EngineState, var: Var) -> bool:
    """Whether nothing but work behind the program reads a variable."""
    return is_unread(var) or _are_all_behind(engine)


@native
def most_memory(base: int) -> int:
    """The most bytes that may be in use where so many were with no operator pending."""
    return base + max(min(base * 3 >> 2, MOST), FREE)


@native
def goes_behind(engine: EngineState) -> bool:
    """Whether all is as usual for work to go behind the program, and there is room.

    What is over there is settled, and the first is waited for where there is much.
    """
    if not engine._usual or not is_known_available() or is_watched():
        return False
    if len(engine._behind) > 0:
        cast(Any, engine)._collect()
    if is_quiet(engine) and _is_crowded(engine):  # amidst an entry no thread may wait
        cast(Any, engine)._make_room()
    return is_quiet(engine) and not engine._sleepers and not _is_crowded(engine)


@native
def _is_crowded(engine: EngineState) -> bool:
    """Whether much is pending behind the program, or uses much memory."""
    if len(engine._behind) >= stream.ROOM:
        return True
    if _MEMORY.large_bytes <= most_memory(engine._base):
        return False  # not even with what lies idle, which takes a look at every size
    used = in_use(_MEMORY)
    if engine._pending == 0:
        engine._base = max(engine._base, used)
    return used > most_memory(engine._base)


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
        repair(engine, _CALL_BACK, job, task)
        raise error
    repair(engine, _CALL_BACK, job, task)
    return False


# --- settling -------------------------------------------------------------------------------------


@native
def _is_over(engine: EngineState, over: int) -> bool:
    """Whether the task that is next to be settled is one of the first so many."""
    number = Words(cast(Task, engine._behind[0].task).address)[NUMBER]
    return number != 0 and number <= over


@native
def _is_plain(engine: EngineState, job: Job, task: Task) -> bool:
    """Whether a task that is over is only to be taken out: no observer is told, nothing failed."""
    if not is_quiet(engine) or engine._ready or engine._sleepers or not _are_all_behind(engine):
        return False
    if is_awaited(job):
        return False
    words = Words(task.address)
    if words[CODE] != 0 or words[END] == 0:  # it was left out
        return False
    return task.told is None and engine._observer is None


@native
def _take_out(engine: EngineState, job: Job) -> None:
    """Take the job of a task that is over out of its variables, and of those behind."""
    leave(engine, job)
    del engine._behind[0]
    ready = engine._ready
    while ready:
        del ready[0]  # it is in the stream


@native
def _is_settled(engine: EngineState) -> bool:
    """Settle the first task, which is over; what it held goes at the end, as that may run code."""
    job = engine._behind[0]
    task = cast(Task, job.task)
    if not _is_plain(engine, job, task):
        return False
    with resting():
        _take_out(engine, job)
    job.task = None
    words = Words(task.address)
    timed = cast(Any, task.timed)
    timed.took((words[END] - words[BEGIN]) * 1e-9)
    timed.settled(task)
    return True


@native
def settled_behind(engine: EngineState, over: int) -> bool:
    """Settle those of the first `over` tasks that were not; whether Python has nothing to do."""
    while len(engine._behind) > 0 and _is_over(engine, over):
        if not _is_settled(engine):
            return False
    return True


settling = Later(settled_behind, False, WORTH)
