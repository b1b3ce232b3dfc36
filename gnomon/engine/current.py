"""The process's engine, made on first use as the setting `engine_type` says."""

from __future__ import annotations

from contextlib import AbstractContextManager

from gnomon import config
from gnomon.engine.engine import Engine
from gnomon.engine.job import Job
from gnomon.engine.naive import NaiveEngine
from gnomon.engine.threaded import ThreadedEngine, ThreadedEnginePerDevice
from gnomon.ground.lock import first_use
from gnomon.ground.record import Frozen, put
from gnomon.native.words import native, whole

KINDS: dict[str, type[Engine]] = {
    kind.__name__: kind for kind in (NaiveEngine, ThreadedEngine, ThreadedEnginePerDevice)
}


@whole
class Process(Frozen):
    """What this process has."""

    __slots__ = ("engine",)

    engine: Engine | None

    def __init__(self) -> None:
        put(self, "engine", None)


PROCESS = Process()


def create(kind: str | None = None) -> Engine:
    """A new engine of the kind named, or of the one that the settings name."""
    return KINDS[kind or config.get("engine_type")]()


def get() -> Engine:
    """The engine of this process.

    >>> get() is get()
    True
    """
    return PROCESS.engine or use(None)


@native
def is_unobserved() -> bool:
    """Whether the engine takes what it does not see: it holds nothing back, has no observers."""
    return holds_nothing_but(None)


@native
def holds_nothing_but(job: Job | None) -> bool:
    """Whether the engine has no observers, and holds or puts nothing off but `job`, if any."""
    engine = PROCESS.engine
    if engine is None or engine._late is not job or engine._deferred:
        return False
    return engine._bulk is None and engine._brief is None and engine._observer is None


def use(engine: Engine | None) -> Engine:
    """Make `engine` the process's; None keeps the present one, made now if there is none.

    What others hold back is pushed to the present one first.
    """
    present = PROCESS.engine
    if engine is not None and present is not None and engine is not present:
        present.push_held_back()
        present.finish_behind()
    with first_use:
        found = engine or PROCESS.engine or create()
        put(PROCESS, "engine", found)
        return found


def bulk(size: int) -> AbstractContextManager[None]:
    """A scope in which up to `size` of this thread's synchronous pushes become one."""
    return get().bulk(size)


def set_bulk_size(size: int) -> int:
    """Join up to `size` of this thread's synchronous pushes to one; returns the size before."""
    return get().set_bulk_size(size)
