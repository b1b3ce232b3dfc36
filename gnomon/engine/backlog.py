"""Inline jobs that a thread made ready: it runs them itself, one by one, and never by recursion."""

from __future__ import annotations

from gnomon.engine.engine import Engine
from gnomon.engine.job import HERE, WAITING, Job
from gnomon.engine.thread import ThreadState

_MOST = 1000  # jobs that a thread runs at one time


class Backlog(Engine):
    """An engine whose threads run what they make ready, if it is inline."""

    def _bounce(self, state: ThreadState, bouncing: bool, job: Job | None = None) -> None:
        """Settle `job`, which ran, then run the backlog, and what it makes ready in turn.

        After `_MOST` of them workers go on: other threads may push without an end. `bouncing` is
        whether the thread did so before, in a function that waits.
        """
        backlog, hand, ran = state.backlog, state.hand, job is not None
        left = _MOST
        try:
            state.bouncing = True
            while True:  # a condition's jump back would be outside of the `try`: `ground/lock.py`
                if job is None and not (backlog and left):
                    break
                if job is None:
                    left -= 1
                    job = backlog[0]
                    hand.append(job)
                    del backlog[0]  # no gap for an interrupt, unlike popleft
                    ran = self._execute(job, state)
                with self._lock:
                    self._settle(job, backlog)
                    hand.remove(job)
                if job.failure is not None or job.interrupt is not None:
                    job.raise_interrupt()
                job, ran = None, False
            if backlog:
                self._give_away(state, bouncing)
        except BaseException:
            self._retry_until_done(Backlog._give_away, self, state, bouncing, job, ran)
            raise
        state.bouncing = bouncing

    def _give_away(
        self, state: ThreadState, bouncing: bool, job: Job | None = None, ran: bool = False
    ) -> None:
        """This thread's work ends here, `job` at hand: others do the rest."""
        with self._lock:
            if ran and job is not None:
                self._leave(job)
            elif job is not None:
                self._pass_on(job)
            self._pass_all_on(state)
            if job in state.hand:
                state.hand.remove(job)
            self._put_right()
        state.bouncing = bouncing
        self._after_entry()

    def _pass_all_on(self, state: ThreadState) -> None:
        """Have the jobs of a backlog dispatched, each taken out once it is. Lock held."""
        while state.backlog:
            self._pass_on(state.backlog[0])
            del state.backlog[0]

    def _pass_on(self, job: Job) -> None:
        """Have a job of a backlog dispatched, if it was not. Lock held."""
        if job.state == HERE:
            job.state = WAITING
            self._ready.append(job)
