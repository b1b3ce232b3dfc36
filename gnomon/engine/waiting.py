"""Waits: for one variable, for everything, for one operator's pushes; and telling who hangs.

A wait sleeps on a lock that Python can interrupt, so Ctrl-C ends it; what it waited for goes on. In
a function that runs on the engine, a wait for a variable that the function itself declared returns
at once (the function holds it already); a wait for everything is refused, as it would never end.
"""

from __future__ import annotations

import logging
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import filterfalse
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from gnomon import config
from gnomon.base import EngineError, complaint
from gnomon.engine.execution import Execution
from gnomon.engine.failure import push_site
from gnomon.engine.gates import shut_gate
from gnomon.engine.job import CLEANUP, DONE, WAIT, Job, Operator, make_job
from gnomon.engine.report import awaited, describe, reachable
from gnomon.engine.thread import ThreadState
from gnomon.engine.var import Var

if TYPE_CHECKING:
    from _thread import LockType

    from gnomon.engine.failure import Failure

log = logging.getLogger("gnomon.engine")

_PATIENCE, _LONGEST = 0.1, 1.0  # seconds between two looks whether anything was done
GIVEN_UP = 5.0  # seconds in which no operator ended, after which a push or a fork goes on
_EVEN = (
    8  # looks in vain, after which the next come ever later: work that takes so long may compute
)


def patience(looks: int) -> float:
    """Seconds until the next look, after so many looks in vain."""
    return min(_PATIENCE * 2.0 ** min(max(looks - _EVEN, 0), 4), _LONGEST)


class Waiting(Execution):
    """The engine's waits."""

    def __init__(self) -> None:
        super().__init__()
        self._hooks: list[Callable[[], None]] = []

    @abstractmethod
    def _push(self, job: Job) -> None:
        """Take in a user's function."""

    @abstractmethod
    def _flush(self) -> None:
        """Push what a bulk scope holds back."""

    def on_wait_all(self, hook: Callable[[], None]) -> None:
        """Have `hook()` called at the start of every `wait_for_all`, to push what is held back.

        Nothing changes where it is called already.
        """
        if hook not in self._hooks:
            self._hooks.append(hook)

    def push_held_back(self) -> None:
        """Have everything pushed that others hold back, by the hooks of `on_wait_all`."""
        for hook in self._hooks:
            hook()

    def wait_for_var(self, var: Var, write: bool = False) -> None:
        """Sleep until every write of `var` pushed so far is done; with `write`, every read too.

        Raises:
            EngineError: a function that the variable's value depends on failed, as did this wait
                each time until something writes the variable again.
        """
        if not isinstance(var, Var):
            raise EngineError(complaint("wait_for_var", "var", "a variable", repr(var)))
        if self._is_settled(var) and not write:
            return
        self._refuse_in_entry("wait_for_var")
        self._after_entry()
        self._catch_up()  # in the midst of which this one may be
        if write and var.pending_readers:
            var.push_pending_readers()
        self._flush()
        if write:
            self.let_finish((var,))
        else:
            self._let_writes_finish(var)
        state = self._state()
        if (var.writer is not None or var.queue or write) and not state.holds(var):
            const, mutate = ((), (var,)) if write else ((var,), ())
            job = make_job(None, WAIT, const, mutate, label="wait_for_var", site=push_site())
            job.gate = shut_gate()
            self._enter(job)
            self._sleep(job.gate, state, wait=job)
        failure = var.failure
        if failure is not None:
            self._report(failure)
            raise failure.error()

    def let_finish(self, variables: Iterable[Var]) -> None:
        """Return when no work behind the program uses any of these variables."""

    def _let_writes_finish(self, var: Var) -> None:
        """Return when no work behind the program writes a variable."""

    def finish_behind(self) -> None:
        """Return when the work that is behind the program now is over."""

    def finish_operators(self) -> bool:
        """Return when the operators that are pending now are over; whether they are.

        Those in Python may wait for users' functions, and these for anything: False where none of
        them came to its end for `GIVEN_UP` seconds. At once in a function and amidst an entry,
        which operators may wait for.
        """
        self.finish_behind()
        state = self._state()
        if state.job is not None or state.bouncing or not self._gets_out():
            return True
        written = dict.fromkeys(var for job in self._unfinished_operators() for var in job.mutate)
        if not written:
            return True
        wait = make_job(None, WAIT, tuple(written), (), label="finish_operators", site=push_site())
        wait.gate = shut_gate()
        self._enter(wait)
        try:
            return self._sleep(wait.gate, state, GIVEN_UP, wait.const)
        finally:
            if wait.state != DONE:  # or it would keep others from what it has got until then
                self._retry_until_done(Waiting._take_out, self, wait)
            wait.const = ()  # the thread that opened the gate may still hold the wait

    def _unfinished_operators(self) -> list[Job]:
        """The operators that are pending and not behind the program."""
        with self._lock:
            queued = list(self._queued)
        return [job for job in queued if job.state != DONE]

    def _enter(self, wait: Job) -> None:
        """Enter a wait in the engine's state, or, where an interrupt comes, take it out again."""
        try:
            with self._lock:
                if self._admit(wait):
                    self._settle(wait)
                    wait.open_gate()
        except BaseException:
            self._retry_until_done(Waiting._take_out, self, wait)
            raise

    def _is_settled(self, var: Var) -> bool:
        """Whether no pushed job writes the variable any more, and all went well."""
        idle = var.writer is None and not var.queue and var.failure is None
        return idle and self._bulk is None and self._late is None and not self._deferred

    def wait_for_all(self) -> None:
        """Sleep until nothing is pending.

        Raises:
            EngineError: a function failed and was not reported yet; or the caller is a function of
                this engine, which would wait for itself.
        """
        self._refuse_in_entry("wait_for_all")
        state = self._state()
        for job in state.running()[:1]:
            name = job.name
            raise EngineError(
                f"wait_for_all: called in function {name!r}: it would wait for itself"
            )
        self._after_entry()
        self._catch_up()  # in the midst of which this one may be
        self.push_held_back()
        self._flush()
        self._drain(state)
        self._raise_first_failure()

    def delete_operator(self, operator: Any) -> None:
        """Forbid further pushes of `operator`, and sleep until the present ones are done.

        Raises:
            EngineError: called in the operator's own function, or with something else.
        """
        if not isinstance(operator, Operator):
            expected = "one of new_operator"
            raise EngineError(complaint("delete_operator", "operator", expected, repr(operator)))
        state = self._state()
        self._flush()
        if any(job.operator is operator for job in state.running()):
            raise EngineError(f"delete_operator: called in function {operator.name!r} itself")
        gate = shut_gate()
        with self._lock:
            operator.deleted = True
            if not operator.active:
                return
            operator.gates.append(gate)
        self._sleep(gate, state)

    def _drain(self, state: ThreadState) -> None:
        """Sleep until nothing is pending."""
        while self._pending:
            self.finish_behind()
            gate = shut_gate()
            with self._lock:
                self._sleepers.append(gate)
                if not self._pending:
                    self._wake_sleepers()
            self._sleep(gate, state)

    def _report(self, failure: Failure) -> None:
        """The program is told: what is pushed from now on finds kept variables as they were."""
        failure.reported = True
        for each in tuple(failure.kept):  # at once: other threads may add some
            var = each()
            if var is not None:
                self._push(make_job(partial(failure.restore, var), CLEANUP, (), (var,)))
            failure.kept.discard(each)

    def _raise_first_failure(self) -> None:
        """Raise the first failure that was not reported, with the number of the others."""
        with self._lock:
            untold = list(filterfalse(attrgetter("reported"), self._failures))
            self._failures.clear()
        for failure in untold:
            self._report(failure)
        if untold:
            error = untold[0].error()
            if len(untold) > 1:
                error.add_note(f"{len(untold) - 1} more functions failed independently")
            raise error

    def _refuse_in_entry(self, where: str) -> None:
        """A finaliser or signal handler in the middle of an entry cannot wait for its end."""
        if not (self._gets_out() and self._settles_own(self._state())):
            raise EngineError(
                f"{where}: called by a finaliser or signal handler within the engine; "
                "let the handler set a flag, and do this where the program sees it"
            )

    def _sleep(
        self,
        gate: LockType,
        state: ThreadState,
        most: float = math.inf,
        written: Sequence[Var] = (),
        wait: Job | None = None,
    ) -> bool:
        """Sleep until `gate` opens, or nothing was done for `most` seconds; whether it opened.

        Only what writes variables counts, where these are `written`. Report what hangs when nothing
        was done for long.

        Raises:
            EngineError: `wait` is for what waits in turn for a function that runs on this thread.
        """
        self._before_sleep(state)
        try:
            return self._sleep_on(gate, state, most, written, wait)
        finally:
            self._after_sleep(state)

    def _done(self, written: Sequence[Var]) -> int:
        """A number that grows when something is done, or `written`."""
        return sum([var.version for var in written]) if written else self._settled

    def _sleep_on(
        self,
        gate: LockType,
        state: ThreadState,
        most: float,
        written: Sequence[Var],
        wait: Job | None,
    ) -> bool:
        period = config.get("hang_report_seconds") or math.inf
        done, since, looks = self._done(written), time.monotonic(), 0
        while not gate.acquire(timeout=min(patience(looks), period)):
            self._collect()
            if done != (now := self._done(written)):
                done, since, looks = now, time.monotonic(), 0
                continue
            self._relieve(state)
            if wait is not None and (running := state.running()):
                self._refuse_circle(wait, running)
            looks += 1
            if time.monotonic() - since >= most:
                return False
            if time.monotonic() - since >= period:
                log.warning("nothing was done for %g s:\n%s", period, self.report())
                since = time.monotonic()
        return True

    def _refuse_circle(self, wait: Job, running: Sequence[Job]) -> None:
        """Raise where a thread waits for what waits in turn for a function that runs on it."""
        with self._lock:
            circle = awaited(wait).intersection(running)
        for job in circle:
            raise EngineError(
                f"{wait.name}: called in function {job.name!r}: it would wait for itself"
            )

    def _relieve(self, state: ThreadState) -> None:
        """Nothing was done for a while: others may sleep where the engine does not see it."""

    def _before_sleep(self, state: ThreadState) -> None:
        """Do what this thread still owes others before it sleeps."""

    def _after_sleep(self, state: ThreadState) -> None:
        """The thread is back from its sleep."""

    def report(self) -> str:
        """What is not done, what it waits for, and where it was pushed, as text."""
        with self._lock:
            return describe(self._unfinished(), self._pending)

    def _unfinished(self) -> list[Job]:
        """Every job that is not done and can be reached. Lock held."""
        jobs = reachable(self._roots())
        return [job for job in jobs if job.state != DONE and job.kind != WAIT]

    def _roots(self) -> list[Job]:
        """The jobs that hold all their variables: they run, are open, or lie ready. Lock held."""
        own = [job for state in self._states for job in state.unsettled()]
        return [*own, *self._ready, *self._open, *self._waiting_to_run()]

    def _waiting_to_run(self) -> list[Job]:
        """The ready jobs that lie somewhere until a thread takes them. Lock held."""
        return []
