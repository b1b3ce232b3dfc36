"""The naive engine: each function runs to its end on the pushing thread, before the push returns.

For debugging: a breakpoint or a traceback shows the place that pushed. An exception is raised at
the push, as it is; what the function writes is poisoned all the same. The guarantees between
threads are the other engines': a push sleeps until its function's turn comes.

A push within a running function runs at once too, unless that function holds one of the variables:
then it runs right after it.
"""

from __future__ import annotations

from functools import partial

from gnomon.engine.engine import Engine
from gnomon.engine.gates import shut_gate
from gnomon.engine.job import ASYNC, DONE, READY, Job
from gnomon.engine.thread import ThreadState


class NaiveEngine(Engine):
    """Runs everything where it is pushed, one after another."""

    def __init__(self) -> None:
        super().__init__()
        self._brief = self  # for good: an error is raised at its push, which a fast path has not

    def _clear(self) -> None:
        super()._clear()
        self._admitted: set[Job] = set()

    def _push(self, job: Job) -> None:
        if not self._gets_out():
            self._deferred.append(partial(self._push, job))
            return
        state = self._state()
        if state.job is not None:
            self._settles_own(state)  # native work that a handler interrupted is settled first
        job.gate = shut_gate()
        try:
            with self._lock:
                admitted = self._admit(job)
                self._admitted.add(job)
                if admitted:
                    job.state = READY
            if not admitted and self._holds_one(state, job):
                state.backlog.append(job)
                return
            if not admitted:
                self._sleep(job.gate, state)
            self._run(job, state)
            while True:  # a condition's jump back would be outside of the `try`: `ground/lock.py`
                if state.job is not None or not state.backlog:
                    break
                job = state.backlog[0]
                del state.backlog[0]  # no gap for an interrupt, unlike popleft
                self._sleep(job.gate, state)
                self._run(job, state)
        except BaseException:
            self._retry_until_done(NaiveEngine._take_out, self, job)
            raise

    _push_inline = _push

    def _holds_one(self, state: ThreadState, job: Job) -> bool:
        """Whether a function running on this thread holds a variable that `job` needs."""
        return any(state.holds(var) for var in (*job.const, *job.mutate))

    def _run(self, job: Job, state: ThreadState) -> None:
        """Run a ready job to its end and raise what it raised; nothing for one withdrawn."""
        if job.state == DONE:
            return
        if self._execute(job, state):
            with self._lock:
                self._settle(job)
        elif job.state != DONE:
            self._sleep(job.gate, state)
        if job.interrupt is not None:
            raise job.interrupt
        failure = job.failure
        if failure is None:
            return
        told = failure.reported
        self._report(failure)
        raise failure.error() if told else failure.exception

    def _leave(self, job: Job) -> None:
        super()._leave(job)
        self._admitted.discard(job)
        if job.kind == ASYNC:
            job.open_gate()

    def _dispatch(self, job: Job) -> None:
        if job.gate.locked():
            job.gate.release()
        job.state = READY  # last: an interrupt before has all of it done again

    def _roots(self) -> list[Job]:
        return [*super()._roots(), *self._admitted]

    def run_brief(self, *kernel: object) -> bool:
        """Never: here an error is raised at its push, which the brief way is too brief for."""
        return False

    def _flush(self) -> None:
        """Nothing is ever held back."""

    def stop(self) -> None:
        """Wait until no thread runs a function."""
        self.wait_for_all()
