"""The engine's state: which job holds or awaits which variable, and what happens when one is done.

State, all of it under one lock: `pending` counts the jobs that are pushed and not done, `settled`
those that are done; `failures` are exceptions that were not reported; `open` are asynchronous
jobs whose function has returned. A job is *waiting* until it holds all its variables, then
*ready*, then *done*.

An interrupt (Ctrl-C) can come at any call, and at any way back in a loop, of the main thread, in
an entry of this state too, and once more while the first is cleaned up after. So `state.py` changes
it in steps that can be broken off and done again; and a thread that is interrupted has it done
again by `retry_until_done`, which ends when it is done. The lock can be taken twice by one thread,
for a finaliser or signal handler that pushes in the middle of an entry: its work is put off to the
entry's end.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque

from gnomon.engine.failure import Failure
from gnomon.engine.gates import open_gates
from gnomon.engine.job import HERE, INLINE, NEW, WAIT, WAITING, Job
from gnomon.engine.retry_until_done import lived, retry_until_done
from gnomon.engine.state import EngineState, admit, leave, promote
from gnomon.engine.thread import ThreadState
from gnomon.ground.lock import reentrant


class Bookkeeping(EngineState, ABC):
    """Admission and settlement of jobs; an engine says where they run."""

    def __init__(self) -> None:
        self._observer = None
        self._retry_until_done, self._live = retry_until_done(), lived()
        self._poisoned = self._usual = False
        self._brief = None
        self._clear()

    def _clear(self) -> None:
        """Begin with empty state and no thread known."""
        self._lock = reentrant()
        self._pending = 0
        self._settled = 0
        self._ready = deque()
        self._behind = deque()
        self._queued = weakref.WeakSet()
        self._bulk = self._late = None
        self._sleepers = []
        self._failures: list[Failure] = []
        self._open: set[Job] = set()
        self._deferred = deque()
        self._local = threading.local()
        self._states: weakref.WeakSet[ThreadState] = weakref.WeakSet()

    @abstractmethod
    def _dispatch(self, job: Job) -> None:
        """Send a ready job to where it runs, and mark it ready. Lock held."""

    def _rouse(self) -> None:
        """See that a thread comes for each job that lies ready. Lock held."""

    def _state(self) -> ThreadState:
        """What is known of this thread."""
        try:
            state: ThreadState = self._local.state
        except AttributeError:
            state = self._local.state = ThreadState()
            with self._lock:
                self._states.add(state)
        return state

    # --- entries; the lock is held --------------------------------------------------------------

    _hold = admit  # native code from some time on; see `native_push.py`
    _let_go = leave

    def _admit(self, job: Job) -> bool:
        """Enter a job with its variables; whether it holds all of them at once."""
        try:
            return self._hold(job)
        except BaseException:
            self._retry_until_done(Bookkeeping._withdraw, self, job)
            raise

    def _settle(self, job: Job, backlog: deque[Job] | None = None) -> None:
        """A job is done: it leaves its variables, and who may run now is sent on its way.

        Inline jobs go to `backlog` where there is one: this thread runs them next.
        """
        try:
            self._leave(job)
            if self._ready:
                self._dispatch_ready(backlog)
            if not self._pending and self._sleepers:
                self._wake_sleepers()
        except BaseException:
            self._retry_until_done(Bookkeeping._leave_for_good, self, job)
            raise

    def _leave_for_good(self, job: Job) -> None:
        """A job is done, though an interrupt said otherwise."""
        self._leave(job)
        self._put_right()

    def _put_right(self) -> None:
        """Do what an entry may have left undone after whose it was."""
        self._dispatch_ready(None)
        if not self._pending:
            self._wake_sleepers()
        self._rouse()

    def _leave(self, job: Job) -> None:
        """Take a job out of its variables and count it as done."""
        self._let_go(job)
        if job.operator is not None and job.operator.gates:
            job.operator.wake_sleepers()

    def _dispatch_ready(self, backlog: deque[Job] | None) -> None:
        """Send every job that nothing blocks any more to where it runs."""
        ready = self._ready
        while ready:
            job = ready[0]
            if job.kind == WAIT:
                self._leave(job)
                job.open_gate()
            elif job.state == WAITING:
                if job.kind == INLINE and backlog is not None:
                    job.state = HERE
                    backlog.append(job)
                else:
                    self._dispatch(job)
            ready.popleft()

    def _wake_sleepers(self) -> None:
        """Nothing is pending: wake those who wait for that."""
        open_gates(self._sleepers)

    def _withdraw(self, job: Job) -> None:
        """Take out a job at whose entry an interrupt came."""
        if job.state != NEW:
            for var in (*job.const, *job.mutate):
                var.remove(job)
                promote(var, self._ready)
            self._leave(job)
        self._put_right()

    def _take_out(self, job: Job) -> None:
        """As `_withdraw`, for who does not hold the lock."""
        with self._lock:
            self._withdraw(job)
