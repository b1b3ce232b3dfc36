"""Statements carried out at once, and those that come again in one native call.

Statements are known by their patterns (`expr/pattern.py`): saver, value, destination. The first
time, a statement goes the whole way: checks, a look into the kernel cache, a filled block. When a
statement of its patterns comes again, a `Launch` is made, which later ones are handed to as they
are: it reads their addresses and numbers itself. Patterns have several launches where operands
overlap in several ways, or where threads run them at the same time. When some have run, operators
and assignments of tensors go through native code that knows the launches, too (see `call_cache`).

State: `KNOWN`, the launches by saver and patterns; `_seen`, how often patterns came that have none.
Both are emptied together when they are full; statements on GPUs have a table of their own, in
`gpu_launch.py`. While a function is traced (see `tracing`), the launches of all threads are gone
and nothing is learned, so that every statement comes by here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, MutableSet, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gnomon.base import Later
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.pattern import EPOCH, NONE, Pattern, drop_older, holds, pattern_of
from gnomon.ground.lock import in_child
from gnomon.plan.statement import SAVERS, Saver, Store
from gnomon.runtime.kernels import stages
from gnomon.runtime.statements import call_cache, families
from gnomon.runtime.statements.launch import Launch, NoLaunch, work_of
from gnomon.runtime.statements.prepare import prepare

if TYPE_CHECKING:
    from gnomon.runtime.statements import gpu_launch
else:
    gpu_launch = Later("gnomon.runtime.statements.gpu_launch")

KEPT = 4096
VARIANTS = 6

Key: TypeAlias = tuple[Pattern | None, Pattern | None]

#: launches by saver, then by the patterns of value and destination
KNOWN: dict[str, dict[Key, Launch]] = {saver: {} for saver in SAVERS}
_seen: dict[tuple[str, Key], int] = {}


class Tracer(Protocol):
    """Who takes the statements of a thread instead of having them carried out."""

    @property
    def streams(self) -> MutableSet[Any]:
        """The random streams that were made since: they begin anew at each call."""

    def take(self, stores: Sequence[Store], together: bool) -> None:
        """Statements, in their order; `together`: all values are taken before any is stored."""

    def draw(self, source: Any, count: int) -> Buffer:
        """What stands for the place of `count` numbers of a random stream."""


class _Tracing(threading.local):
    tracer: Tracer | None = None


_thread = _Tracing()
#: of all threads; while there is one, nothing is learned
TRACERS: list[Tracer] = []


def store(dest: Buffer, saver: Saver, value: Expr) -> None:
    """`dest saver value`, now.

    Raises:
        ShapeError, DTypeError: the value does not fit; the destination is untouched.
    """
    epoch, outline, is_new = EPOCH.value, None, value.pattern is None
    if is_new:  # it takes longer to ask for patterns
        outline = _as_member(dest, saver, value)
        if outline is True:
            return
    key = (pattern_of(value), pattern_of(dest))
    launch = KNOWN[saver].get(key)
    while launch is not None:
        done = launch.call(dest, value)
        if done:
            if not launch.noted and not TRACERS:
                launch.noted = call_cache.note_launch(dest, saver, value, launch)
            return
        if done is None:
            launch.failed()
        launch = launch.following
    if not is_new:
        outline = _as_member(dest, saver, value)
        if outline is True:
            return
    statement = Store(dest, saver, value)
    if _thread.tracer is not None:
        _thread.tracer.take([statement], False)
        return
    learns = NONE not in key and not TRACERS and not stages.timed()
    if learns and dest.device.startswith("gpu"):
        gpu_launch.store(statement, key)
        return
    stages.run(prepare([statement], "assignment"))
    if learns and dest.device == "cpu":
        _learn((saver, key), statement, came=outline is None)
        if outline:
            families.learn(statement, outline, epoch)


def _as_member(dest: Buffer, saver: Saver, value: Expr) -> Any:
    """What `families.way` says of a statement, where statements are learned."""
    if TRACERS or stages.timed():
        return False
    found = families.way(saver, dest, value)
    if found is True:
        call_cache.count()
    return found


def store_all(stores: Sequence[Store]) -> None:
    """Statements as one: all values are taken before any is stored; now.

    Raises:
        ShapeError, DTypeError: a value does not fit; the destinations are untouched.
    """
    if _thread.tracer is not None:
        _thread.tracer.take(stores, True)
        return
    stages.run(prepare(stores, "assignment"))


def tracer() -> Tracer | None:
    """Who takes the statements of this thread; None where they are carried out."""
    return _thread.tracer


@contextmanager
def tracing(taker: Tracer) -> Iterator[None]:
    """Inside, `taker` takes the statements of this thread."""
    before, _thread.tracer = _thread.tracer, taker
    TRACERS.append(taker)
    forget()
    try:
        yield
    finally:
        _thread.tracer = before
        TRACERS.remove(taker)


def forget() -> None:
    """Let every statement go the whole way again."""
    for table in KNOWN.values():
        table.clear()
    _seen.clear()
    call_cache.clear()
    families.forget()


def _learn(where: tuple[str, Key], statement: Store, came: bool) -> None:
    """Note that a statement came; make a launch where one is worth it.

    One that `came` before did so as a member of its family.
    """
    saver, key = where
    epoch = EPOCH.value
    if not all(map(holds, key)):
        drop_older(statement.dest, statement.value)
        return
    count = _seen.get(where, int(came))
    if count == 0 and len(_seen) >= KEPT:
        forget()
    _seen[where] = count + 1
    if not 1 <= count <= VARIANTS or 0 in statement.dest.shape:
        return
    try:
        made = Launch(work_of(statement))
    except NoLaunch:
        _seen[where] = VARIANTS + 1
        return
    except Exception:
        if epoch == EPOCH.value:
            raise
        return
    if epoch != EPOCH.value:  # it may be of a shape that its key does not tell
        return
    table = KNOWN[saver]
    first = table.get(key)
    made.following = None if first is None or first.epoch != made.epoch else first
    table[key] = made


def _in_child() -> None:
    """In a forked child: launches that other threads ran and traces they made are not here."""
    TRACERS[:] = [t for t in TRACERS if t is _thread.tracer]
    call_cache.renew()
    forget()


in_child(_in_child)
