"""Pushes and workers' turns by native code: where that finds what it reads; see `state_code`.

`native(kind)` is called when there is first a worker to be had, or many functions were run without,
so that a program that pushes but few does without: to load the code takes ten milliseconds.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from gnomon.engine import state_code
from gnomon.engine.bookkeeping import EngineState
from gnomon.engine.completion import UNBEGUN, refuse
from gnomon.engine.failure import PACKAGE
from gnomon.engine.fast_path_code import VARIABLE
from gnomon.engine.job import Job, Operator
from gnomon.engine.operator_code import ALL_PUSHES
from gnomon.engine.thread import ThreadState
from gnomon.engine.var import NO_JOBS, Var
from gnomon.engine.work_code import WORK
from gnomon.engine.work_queue import WorkQueue
from gnomon.lock import reentrant
from gnomon.native.method import Method, bound, for_good, method_of, native_code
from gnomon.runtime.ffi import Block
from gnomon.runtime.once import once
from gnomon.runtime.statements.fields import WORD, offset, readable, type_offset, words

#: `turns(engine, work_queue, state)`: see `work_code`
Turns = Callable[[Any, WorkQueue, ThreadState], Any]

_SLOTS: dict[type, tuple[str, ...]] = {
    EngineState: (
        "_behind", "_bulk", "_bulking", "_cpu_context", "_deferred", "_hiring", "_late", "_local",
        "_lock", "_observer", "_pending", "_ready", "_settled", "_sleepers", "_work_queue",
    ),
    Job: (
        "blockers", "const", "copy", "ctx", "failure", "fn", "interrupt", "kind", "label",
        "mutate", "operator", "outer", "priority", "site", "state",
    ),
    WorkQueue: ("closed", "idle", "normal", "orphaned", "short", "urgent", "waking"),
    Operator: (
        "active", "anew", "brief", "const", "copy", "deleted", "fn", "gates", "kind", "mutate",
        "name",
    ),
    ThreadState: ("backlog", "bouncing", "done", "job"),
    Var: ("deleted", "failure", "pending_readers", "queue", "readers", "version", "writer"),
}  # fmt: skip
_NAMES = ("append", "release", "co_filename", "state")
_PARAMETERS = ("fn", "ctx", "const_vars", "mutate_vars", "priority", "name", "copy")


def in_python(engine: Any, work_queue: WorkQueue, state: ThreadState) -> None:
    """The turns of a worker where there is no native code: none."""


@once
def _owner() -> int | None:
    """Where a lock keeps its owner, 0 while it is free; None where that cannot be seen."""
    lock = reentrant()
    free = words(lock)
    with lock:
        held = words(lock)
    mine = threading.get_ident()
    places = [k for k, (a, b) in enumerate(zip(free, held, strict=True)) if not a and b == mine]
    return places[0] * WORD if places and words(lock) == free else None


def _numbers(owner: int) -> dict[str, int]:
    """What stands for the names in the native code."""
    found = {name: offset(Var, name) for name in VARIABLE}
    for kind, slots in _SLOTS.items():
        found.update((f"{kind.__name__}.{slot}", offset(kind, slot)) for slot in slots)
    found.update((f".{k}", v) for k, v in vars(state_code).items() if isinstance(v, int))
    return found | {"type": type_offset(), "lock.owner": owner}


@once
def native(kind: Any) -> Turns:
    """From now on engines of a class push by native code, where there may be such; its turns."""
    owner = _owner() if readable() else None
    if owner is None:
        return in_python
    known = [
        Job, Var, Operator, deque, NO_JOBS, (), 0, 1, 2, 3, *map(sys.intern, _NAMES), PACKAGE,
        tuple, list, kind.push_sync, kind.push, kind._go_on, kind,
        refuse, *UNBEGUN,
        *map(sys.intern, _PARAMETERS),
    ]  # fmt: skip
    record = Block([*map(id, known)])
    symbols = {"record": record.address}
    numbers = _numbers(owner)
    pushes, work = (native_code(text, numbers, symbols) for text in (ALL_PUSHES, WORK))
    methods = {
        name: Method(name, pushes.address(name), _told(getattr(kind, name)), words=True)
        for name in ("push_sync", "push")
    }
    turns = Method("turns", work.address("work"))
    for_good((known, record, pushes, work, methods, turns))
    for name, method in methods.items():
        setattr(kind, name, method_of(kind, method))
    made: Turns = bound(turns, None)
    return made


def _told(method: Any) -> str:
    """What a method in C tells of itself: the signature, and the text of the one in Python."""
    given = [
        x.name if x.default is x.empty else f"{x.name}={x.default!r}"
        for x in inspect.signature(method).parameters.values()
    ]
    shown = ", ".join(["$self", *given[1:]])
    return f"{method.__name__}({shown})\n--\n\n{method.__doc__}"
