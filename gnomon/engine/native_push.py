"""The usual pushes by native code: `push_sync`, and that of a prepared operator.

A push in Python takes the engine's lock and some hundred instructions, longer than a short function
runs. Native code needs no lock: Python's own is held all the while, so it is enough that no other
thread is in the midst of an entry, that is, that the engine's lock is free. A thread that finds it
taken, or anything but the usual, changes nothing and leaves all to the method in Python. The
collector is off meanwhile, since it may run any code. No signal's handler runs in between either.

Usual is: for the ordinary workers of the processor, no priority, at most a few live variables that
have no pending readers. A prepared inline function runs here, where no job is in its way: it is
entered, called and settled without Python. What it raises, what it makes ready and what else came
meanwhile is for `_go_on` in Python. An interrupt may keep that from doing its work, which shows by
`bouncing`: then it is called again.

`native_turns(kind)` (see `turns.py`) is called when there is first a worker to be had, or many
functions were run without, so that a program that pushes but few does without: to load the code
takes ten milliseconds.
"""

from __future__ import annotations

from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, cast

from gnomon.engine.completion import refuse
from gnomon.engine.engine import Engine
from gnomon.engine.failure import push_site
from gnomon.engine.job import INLINE, READY, SYNC, Job, Operator, make_job
from gnomon.engine.retry_until_done import ROOM, make_room, repair
from gnomon.engine.state import EngineState, admit, is_awaited, leave, send_ordinary
from gnomon.engine.thread import ThreadState
from gnomon.engine.var import Var, is_free, is_unread
from gnomon.engine.work_queue import WorkQueue, put_ordinary
from gnomon.ground.collector import resting
from gnomon.native.words import Words, native
from gnomon.runtime.statements.fields import lock_owner

OWNER = lock_owner() or 0
MOST = 8  # variables of a list that native code looks at
TRIES = 1000  # to go on, while interrupts come
_STATE, _ABANDON = "state", "_abandon"
_PUSH_SYNC: Any = Engine.push_sync
_PUSH: Any = Engine.push


@native
def is_quiet(engine: EngineState) -> bool:
    """Whether no thread is in the midst of an entry, and nothing was put off."""
    if Words(id(engine._lock) + OWNER)[0] != 0:
        return False
    return not engine._hiring and not engine._deferred


@native
def _is_zero(priority: object) -> bool:
    return type(priority) is int and priority == 0


@native
def _listed(given: object) -> tuple[object, ...] | None:
    """A list of variables as a tuple; None for what is none."""
    if type(given) is tuple:
        return given
    if type(given) is list:
        return tuple(given)
    return None


@native
def _are_fit(things: tuple[object, ...], written: bool) -> bool:
    """Whether all are live variables, each once; if `written`, without pending readers."""
    count = len(things)
    if count > MOST:
        return False
    for k in range(count):
        thing = things[k]
        if not isinstance(thing, Var) or thing.deleted or (written and thing.pending_readers):
            return False
        for j in range(k):
            if things[j] is thing:
                return False
    return True


@native
def _are_apart(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Whether two tuples have no element in common."""
    for k in range(len(some)):
        one = some[k]
        for j in range(len(others)):
            if others[j] is one:
                return False
    return True


@native
def _is_usual(operator: Operator) -> bool:
    """Whether an operator is one that native code pushes."""
    if operator.deleted or operator.anew is not None or operator.copy:
        return False
    return _are_fit(operator.const, False) and _are_fit(operator.mutate, True)


# --- to workers -----------------------------------------------------------------------------------


@native
def _is_open(engine: EngineState) -> bool:
    """Whether a function may be entered for the workers."""
    if not engine._usual or not is_quiet(engine) or engine._work_queue is None:
        return False
    return engine._late is None and not engine._bulking and not engine._behind


@native
def _enter(
    engine: EngineState, fn: object, const: tuple[Var, ...], mutate: tuple[Var, ...], name: object,
    operator: Operator | None,
) -> None:  # fmt: skip
    """Enter a function for the workers."""
    job = make_job(fn, SYNC, const, mutate, None, 0, name, False, push_site())
    job.operator = operator
    try:
        if admit(engine, job):
            put_ordinary(cast(WorkQueue, engine._work_queue), job)
    except BaseException as error:
        repair(engine, _ABANDON, job, None)
        raise error


@native
def _is_pushed(
    engine: EngineState, fn: object, const_vars: object, mutate_vars: object, name: object
) -> bool:
    """Whether a function was entered for the workers."""
    if not _is_open(engine):
        return False
    const = _listed(const_vars)
    mutate = _listed(mutate_vars)
    if const is None or mutate is None:
        return False
    if not _are_fit(const, False) or not _are_fit(mutate, True) or not _are_apart(const, mutate):
        return False
    reads = cast("tuple[Var, ...]", const)
    _enter(engine, fn, reads, cast("tuple[Var, ...]", mutate), name, None)
    return True


@native
def push_sync(
    engine: EngineState, fn: object, ctx: object = None, const_vars: object = (),
    mutate_vars: object = (), priority: object = 0, name: object = None, copy: object = False,
) -> None:  # fmt: skip
    """Push a function for the workers."""
    pushed = False
    if ctx is None and copy is False and _is_zero(priority) and callable(fn):
        with resting():
            pushed = _is_pushed(engine, fn, const_vars, mutate_vars, name)
    if not pushed:
        _PUSH_SYNC(engine, fn, ctx, const_vars, mutate_vars, priority, name, copy)


# --- here -----------------------------------------------------------------------------------------


@native
def _is_runnable(engine: EngineState, operator: Operator) -> bool:
    """Whether an inline function may be entered and run."""
    if not engine._usual or not is_quiet(engine):
        return False
    if engine._late is not None or engine._bulk is not None or engine._observer is not None:
        return False
    return _is_usual(operator) and _are_untouched(operator)


@native
def _idle_state(engine: EngineState) -> ThreadState | None:
    """The thread's state where an inline function may run right away."""
    try:
        state = cast(ThreadState, getattr(engine._local, _STATE))
    except AttributeError:
        return None  # the thread's first push
    return None if state.bouncing else state


@native
def _are_untouched(operator: Operator) -> bool:
    """Whether an operator's function may run at once, as no job or failure is in its way."""
    for var in operator.const:
        if not is_free(var):
            return False
    for var in operator.mutate:  # noqa: SIM110  `all` would keep its answer in a variable
        if not is_free(var) or not is_unread(var):
            return False
    return True


@native
def _entered_here(engine: EngineState, state: ThreadState, operator: Operator) -> Job:
    """Enter an operator's function, to be called here."""
    const = operator.const
    job = make_job(operator.fn, INLINE, const, operator.mutate, None, 0, operator.name, False, None)
    job.operator = operator
    admit(engine, job)
    job.state = READY
    job.outer = state.job
    state.job = job
    state.bouncing = True
    return job


@native
def call_function(job: Job, context: object) -> None:
    """Call a job's function, and refuse an answer that says that nothing has run."""
    answer = job.fn(context)
    if answer is not None:
        kind = type(answer)
        if kind is CoroutineType or kind is GeneratorType or kind is AsyncGeneratorType:
            refuse(answer)


@native
def _is_settled_here(engine: EngineState, state: ThreadState, job: Job) -> bool:
    """Settle what ran here; whether that was all, else it is for Python to go on."""
    if not is_quiet(engine) or engine._ready or state.backlog or engine._sleepers:
        return False
    if job.state != READY or is_awaited(job):
        return False
    leave(engine, job)
    if not send_ordinary(engine):
        return False
    state.job = job.outer
    state.bouncing = False
    return True


@native
def _go_on(engine: EngineState, state: ThreadState, job: Job, raised: BaseException | None) -> None:
    """Have Python go on, with what the function raised; again where an interrupt ended it."""
    try:
        cast(Any, engine)._go_on(job, state, raised)
        return
    except BaseException as error:
        first = error
    make_room(ROOM)
    for _ in range(TRIES):
        if not state.bouncing:
            break
        try:
            cast(Any, engine)._go_on(job, state, raised)
        except BaseException:
            continue
    make_room(-ROOM)
    raise first


@native
def _run_here(engine: EngineState, state: ThreadState, job: Job) -> None:
    """Call a job's function and settle it."""
    try:
        call_function(job, engine._cpu_context)
    except BaseException as error:
        _go_on(engine, state, job, error)
        return
    settled = False
    try:
        with resting():
            settled = _is_settled_here(engine, state, job)
    except BaseException:
        settled = False  # memory lacked for a step: Python does it again
    if not settled:
        _go_on(engine, state, job, None)


@native
def _push_entered(engine: EngineState, operator: Operator) -> bool:
    """Whether an operator's function was entered for the workers."""
    if operator.kind != SYNC or not _is_open(engine) or not _is_usual(operator):
        return False
    name = operator.name
    _enter(engine, operator.fn, operator.const, operator.mutate, name, operator)
    return True


@native
def push(engine: EngineState, operator: object, ctx: object = None, priority: object = 0) -> None:
    """Push a prepared operator."""
    is_usual = ctx is None and _is_zero(priority)
    if type(operator) is not Operator or operator.brief or not is_usual:
        _PUSH(engine, operator, ctx, priority)
        return
    pushed = False
    job: Job | None = None
    state: ThreadState | None = None
    with resting():
        if operator.kind == INLINE:
            state = _idle_state(engine) if _is_runnable(engine, operator) else None
            if state is not None:
                job = _entered_here(engine, state, operator)
        else:
            pushed = _push_entered(engine, operator)
    if job is not None and state is not None:
        _run_here(engine, state, job)
    elif not pushed:
        _PUSH(engine, operator)


push_sync.__doc__, push.__doc__ = _PUSH_SYNC.__doc__, _PUSH.__doc__
