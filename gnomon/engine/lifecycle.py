"""Fork and exit: what becomes of pending work when the process is doubled or ends.

Fork. Operators are waited for first, while no lock is held that they might need; not those of which
none came to its end for some seconds. Then the forking thread holds every engine's state
while the process is doubled. The parent goes on as before. The child has one thread and none of the
work: its engine begins with empty state and new workers when they are needed; what a pending
function would have written is poisoned there, since the parent computes it, not the child. That
takes the child a microsecond or two for each pending function, most of it to copy the pages that
hold them, and the parent nothing.

Exit. Work that is ready or runs is waited for, so that nothing pushed before is lost; what other
threads push meanwhile may be. Every ten seconds without an end of anything are reported. Where all
that is left waits for an `on_complete` that did not come for `_PATIENCE` seconds, it is dropped
with a report; Ctrl-C drops at once. Where Ctrl-C has ended the program already, functions that run
are waited for, and what has not begun is dropped. Failures that were not waited for are logged.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import sys
import time
import weakref
from operator import attrgetter
from typing import Any

from gnomon.base import EngineError
from gnomon.engine.failure import Failure
from gnomon.engine.gates import shut_gate
from gnomon.engine.job import DONE, Job
from gnomon.engine.report import neighbourhood
from gnomon.engine.waiting import Waiting, patience
from gnomon.ground.lock import around_forks, before_forks
from gnomon.ground.record import put
from gnomon.runtime.execution import stream

log = logging.getLogger("gnomon.engine")

_OPERATOR = attrgetter("operator")
_PATIENCE = 5.0
_REPORTED = 10.0  # seconds between two reports of work that runs long


class Lifecycle(Waiting):
    """The part of an engine that lives through forks and ends with the interpreter."""

    def __init__(self) -> None:
        super().__init__()
        engines.add(self)

    def prepare(self) -> None:
        """Before a fork takes any lock: finish operators, so that the child has their results."""
        self._flush()
        self.finish_operators()

    def hold(self) -> None:
        """Before a fork: no other thread may be amidst an entry, and nothing is held back.

        What runs behind the program is finished first, so that the child has it.
        """
        self._flush()
        self.finish_behind()
        self._lock.acquire()

    def let_go(self) -> None:
        """After a fork, in the parent; a signal's handler may have ended `hold` early."""
        if self._lock._is_owned():
            self._lock.release()

    def restart(self, why: str) -> None:
        """Begin with empty state. What was pending is lost, and holds no variable any more."""
        running = self._state().running()
        roots = [*self._roots(), *running]
        operators = set(map(_OPERATOR, roots))
        for var, users in neighbourhood(roots):
            operators.update(map(_OPERATOR, users))
            writer = var.last_writer()
            if writer is not None and writer not in running:
                put(var, "failure", _lost(writer, why))
                self._poisoned = True
            var.release()
        for job in self._held_back():
            job.fail(_lost(job, why))
            self._poisoned = True
        for job in roots:
            job.state = DONE
        for operator in operators - {None}:
            operator.forget()
        self._clear()

    def _held_back(self) -> list[Job]:
        """What another thread held back right after `hold` had everything pushed. Lock held."""
        late = [] if self._late is None else [self._late]
        return late if self._bulk is None else [*late, *self._bulk.jobs]

    def finish(self) -> None:
        """At the interpreter's exit: wait for the work, or drop it with a report."""
        try:
            self._flush()
            if _is_interrupted():
                self._drop()
            else:
                self.finish_behind()
                self._outwait(None)
        except KeyboardInterrupt:
            log.warning("interrupted at exit; dropped:\n%s", self.report())
        untold = [failure for failure in self._failures if not failure.reported]
        for failure in untold:
            log.error("not waited for: %s", failure.error())

    def _drop(self) -> None:
        """At the exit after Ctrl-C: wait for functions that run, and drop what has not begun."""
        stream.close()
        self._collect()
        with self._lock:
            running = [job for state in self._states for job in state.running()]
        self._outwait(running)
        with self._lock:
            if self._pending:
                log.warning("Ctrl-C ended the program: dropped %d pending functions", self._pending)
            self.restart("it was pending when Ctrl-C ended the program")

    def _outwait(self, left: list[Job] | None) -> None:
        """Sleep until all that is `left` is done, or nothing more is to be expected.

        With None that is what is pending now: other threads may push without an end.
        """
        last, looks = self._settled + self._pending, 0
        since = told = time.monotonic()
        while self._pending and self._state().job is None:
            settled, gate = self._settled, shut_gate()
            with self._lock:
                self._sleepers.append(gate)
                if not self._pending:
                    self._wake_sleepers()
                if settled >= last and left is None:
                    left = self._unfinished()
            if left is not None and all(job.state == DONE for job in left):
                return
            self._before_sleep(self._state())
            now, looks = time.monotonic(), looks + 1
            if gate.acquire(timeout=patience(looks)) or settled != self._settled:
                since = told = now
            elif now - since >= _PATIENCE and not self._is_busy():
                log.warning("dropped at exit, after %g s of nothing:\n%s", _PATIENCE, self.report())
                return
            elif now - told >= _REPORTED:
                told = now
                log.warning("the exit waits for:\n%s", self.report())

    def _is_busy(self) -> bool:
        """Whether any thread runs, or is about to run, a function."""
        with self._lock:
            return any(map(attrgetter("job"), self._states)) or bool(self._waiting_to_run())


def _is_interrupted() -> bool:
    """Whether Ctrl-C has ended the program; an interactive one goes on after it."""
    return getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")


def _lost(job: Job, why: str) -> Failure:
    """What is read of what a job was still to write when its engine began anew."""
    failure = Failure(EngineError(why), job.name, job.site)
    failure.reported = True  # what is written anew is good
    return failure


engines: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Lifecycle] = []


def _before_locks() -> None:
    for engine in list(engines):
        engine.prepare()


def _before_fork() -> None:
    _held.extend(engines)
    for engine in _held:
        engine.hold()
    stream.hold()


def _after_fork_in_parent() -> None:
    stream.let_go()
    while _held:
        _held.pop().let_go()


def _after_fork_in_child() -> None:
    stream.restart()
    while _held:
        _held.pop().restart("it was pending in the parent when the process forked")


def _at_exit() -> None:
    stream.refuse()  # daemon threads may push without an end, and be waited for later
    with contextlib.ExitStack() as each:  # whatever one of them raises
        each.callback(stream.close)
        for engine in list(engines):
            each.callback(engine.finish)


around_forks(_before_fork, _after_fork_in_parent, _after_fork_in_child)
before_forks(_before_locks)
atexit.register(_at_exit)
