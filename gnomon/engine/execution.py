"""Execution: a ready job's function is called, and what it raises becomes a failure.

The lock is not held while a function runs, but for `run_brief`, whose kernels are shorter than the
entries they spare.

A signal's handler may raise an exception between any two instructions of the main thread. Where
that ends a resumable function (see `Repeatable`), it is called again until it comes to its end, and
the exception waits until the engine's state is consistent. An error of its own comes each time it
is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import filterfalse
from operator import attrgetter
from typing import Any, cast

from gnomon.base import EngineError
from gnomon.context import Context, cpu
from gnomon.engine.bookkeeping import Bookkeeping
from gnomon.engine.completion import Completion, refuse
from gnomon.engine.failure import Failure, describe_site, push_site
from gnomon.engine.fast_path import FastPath
from gnomon.engine.job import (
    ASYNC,
    BULK,
    CLEANUP,
    DONE,
    INLINE,
    Function,
    Job,
    RunContext,
    is_native,
    make_job,
)
from gnomon.engine.thread import ThreadState
from gnomon.engine.var import Var
from gnomon.ground.lock import is_held_once
from gnomon.ground.record import put

Observer = Callable[[str, Context, float, float], None]

_CPU = cpu(0)
_TRIES = 3  # an error that comes so often is the function's own
_KEPT_FAILURES = 1000  # a program that never waits must not keep every traceback


def _are_taken(const: Iterable[Var], mutate: Iterable[Var]) -> bool:
    """Whether a job is in the way of one that would read and write these. Lock held."""
    for var in const:
        if var.writer is not None or var.queue or var.failure is not None:
            return True
    for var in mutate:
        if var.readers or var.writer is not None or var.queue or var.failure is not None:
            return True
    return False


def _touched(job: Job) -> tuple[Var, ...]:
    """The variables of a job."""
    return (*job.const, *job.mutate)


def _count(mutate: Iterable[Var]) -> None:
    """These were written once more. Lock held."""
    for var in mutate:
        put(var, "version", var.version + 1)


class Execution(Bookkeeping):
    """Calls the functions of ready jobs, on whatever thread."""

    def __init__(self) -> None:
        super().__init__()
        self._contexts: dict[tuple[int, int], RunContext] = {}
        self._cpu_context = RunContext(_CPU)
        self._lack = Failure(MemoryError("there was none to note what failed"), "?", None)
        self._cut = Failure(EngineError("interrupted while a failure was noted"), "?", None)

    def _run_context(self, ctx: Context | None) -> RunContext:
        """The run context of a device, made once."""
        if ctx is None:
            return self._cpu_context
        key = ctx.device_typeid, ctx.device_id
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = RunContext(ctx)
        return found

    def run_brief(
        self,
        fn: Function,
        const: Iterable[Var],
        mutate: Iterable[Var],
        ctx: Context | None = None,
        name: str | None = None,
        held: Job | None = None,
    ) -> bool:
        """Run a kernel of a few microseconds here, if no job is in its way; whether it ran.

        It runs under the engine's lock, which spares all entries in the engine's state: half a
        microsecond instead of two. A variable may be both read and written, and listed more than
        once. Where it answers False, nothing happened: push. Pending readers are not asked for.
        With `held` it is run if that is still held back, which it is the kernel of.
        """
        if self._observer is not None or self._bulk is not None or self._late is not held:
            return False
        if self._deferred and self._comes_later(const, mutate):
            return False
        if self._behind:
            self._collect()
        outer = None if self._brief is None else self._outer_brief()
        with self._lock:
            if _are_taken(const, mutate) or self._late is not held:
                return False
            try:
                self._late = None
                self._brief = fn  # no handler comes in between
                answer = fn(self._cpu_context if ctx is None else self._run_context(ctx))
                if self._brief is not fn:  # a handler gave the lock back: see `_gets_out`
                    self._retry_until_done(Execution._hold_again, self)
                self._brief = outer
                if answer is not None:
                    refuse(answer)
            except BaseException as exception:
                self._retry_until_done(Execution._hold_again, self)
                self._brief = outer
                failed = make_job(fn, INLINE, (), tuple(mutate), ctx, 0, name)
                self._bring_to_end(failed, exception)
                _count(failed.mutate)
                failed.raise_interrupt()
                return True
            _count(mutate)
        if self._deferred:
            self._after_entry()
        return True

    def try_fast_path(
        self,
        fast_path: FastPath,
        read: list[Var],
        written: list[Var],
        integers: list[int],
        holders: list[Any],
    ) -> bool:
        """Run a fast path if none of its variables is in use; whether it ran. See `fast_path.py`.

        As with `run_brief`, a variable may be listed more than once; no pending reader is pushed.
        """
        if self._observer is not None or self._bulk is not None or self._late is not None:
            return False
        if self._deferred:  # which comes before it
            return False
        if self._behind:
            self._collect()
        if self._brief is not None:  # a kernel runs on variables that it does not hold
            return False
        return fast_path(read, written, integers, holders)

    def _comes_later(self, const: Iterable[Var], mutate: Iterable[Var]) -> bool:
        """Whether a job that was put off is in the way of one that would read and write these."""
        awaited = [var for work in tuple(self._deferred) for var in _touched(work.args[0])]
        return not {*const, *mutate}.isdisjoint(awaited)

    def _outer_brief(self) -> object:
        """The brief kernel that this thread runs, within which another one is to run, if any."""
        return None if self._gets_out() else self._brief

    def _hold_again(self) -> None:
        """Take the lock, unless this thread has it."""
        if not self._lock._is_owned():
            self._lock.acquire()

    def _gets_out(self) -> bool:
        """Whether this thread is in no entry, or gets out of one, whose end it could not wait for.

        A native kernel that a handler interrupted in `run_brief` comes to its end here, and the
        lock is given back: `run_brief` takes it again when it goes on.
        """
        lock, brief = self._lock, self._brief
        if not lock._is_owned():
            return True
        if not is_native(brief):
            return False
        try:
            cast(Any, brief)(self._cpu_context)
        except Exception:  # it failed: `run_brief` tells
            return False
        once = is_held_once(lock)
        if self._brief is not brief:  # another handler, amid this one, gave the lock back
            return self._gets_out()
        if once:  # from that look on nothing is called
            self._brief = None
            lock.release()
        return once

    def _settles_own(self, state: ThreadState) -> bool:
        """Whether this thread has no job in hand that is to run when a handler returns.

        Native work is done here, if it was not, and settled. A function that runs may wait.
        """
        running = state.running()
        for job in (*running, *state.hand):
            ours = is_native(job.fn)
            if job.state == DONE or (job in running and not ours):
                continue
            if not ours or (self._poisoned and not job.fn.done):
                return False
            try:
                self._call(job)
            except BaseException as exception:
                self._bring_to_end(job, exception)
            with self._lock:
                self._settle(job)
        return True

    def _collect(self) -> None:
        """Settle what has ended behind the program."""

    def _execute(self, job: Job, state: ThreadState) -> bool:
        """Run a ready job's function here; False where its `on_complete` is still to come."""
        job.outer = state.job
        state.job = job
        try:
            if job.kind > INLINE or self._poisoned or self._observer is not None:
                return self._treat(job, state)
            answer = job.fn(self._cpu_context if job.ctx is None else self._run_context(job.ctx))
            if answer is not None:
                refuse(answer)
        except BaseException as exception:
            self._bring_to_end(job, exception)
        finally:
            state.job = job.outer
        return True

    def _bring_to_end(self, job: Job, exception: BaseException) -> None:
        """As `_resume`, whatever comes meanwhile."""
        try:
            self._retry_until_done(Execution._resume, self, job, exception)
        except BaseException as another:  # it waits until the engine's state is consistent
            job.interrupt = another
            if job.failure is None and not getattr(job.fn, "resumable", False):
                self._poisoned = True
                job.fail(self._lack if isinstance(another, MemoryError) else self._cut)

    def _treat(self, job: Job, state: ThreadState) -> bool:
        """Run a job that is not plain, or at a time when failures or an observer are about."""
        if job.kind == BULK:
            for part in job.fn:
                self._execute(part, state)
                part.outer = None  # else they would keep each other
        elif self._poisoned and (failure := job.inherited()) is not None:
            job.poison(failure)
        elif self._observer is not None:
            return self._observed(job, self._observer)
        else:
            return self._call(job)
        return True

    def _resume(self, job: Job, exception: BaseException) -> None:
        """Bring a job to its end where that is possible: `exception` may be a signal handler's."""
        if not getattr(job.fn, "resumable", False):
            self._fail(job, exception)
            return
        first, tries = exception, int(isinstance(exception, Exception))
        while tries < _TRIES:
            try:
                if self._poisoned and (failure := job.inherited()) is not None:
                    job.poison(failure)
                else:
                    self._call(job)
                break
            except Exception as error:
                exception = error
                tries += 1
            except BaseException as error:
                first = error
        else:
            self._fail(job, exception)
        if tries < _TRIES or not isinstance(first, Exception):
            job.interrupt = first

    def _call(self, job: Job) -> bool:
        """Call a job's function; whether the job is finished with that."""
        run = self._cpu_context if job.ctx is None else self._run_context(job.ctx)
        if job.kind == ASYNC:
            with self._lock:
                self._open.add(job)
            done = Completion(self._complete, job)  # not let go of before `refuse` has spoken
            refuse(job.fn(run, done))
            return False
        refuse(job.fn(run))
        if self._poisoned and job.kind != CLEANUP and job.state != DONE:
            job.heal()
        return True

    def _observed(self, job: Job, observer: Observer) -> bool:
        """Call a job's function and tell the observer its name, device, begin and end."""
        begin = time.perf_counter()
        try:
            return self._call(job)
        finally:
            observer(job.name, job.ctx or _CPU, begin, time.perf_counter())

    def _fail(self, job: Job, exception: BaseException) -> Failure:
        """Poison what a job writes with what its function raised, once."""
        if job.failure is not None:  # a handler that came amid it had it told
            return job.failure
        failure = Failure(exception, job.name, job.site or push_site())
        with self._lock:
            self._poisoned = True
            self._open.discard(job)
            if job.state != DONE:  # else its on_complete came first, and the variables are gone
                job.fail(failure)
            self._failures[:] = list(filterfalse(attrgetter("reported"), self._failures))
            if len(self._failures) < _KEPT_FAILURES:
                self._failures.append(failure)
        return failure

    def _complete(self, job: Job, error: BaseException | None) -> None:
        """An asynchronous function's `on_complete`, from whatever thread."""
        if not self._gets_out():
            self._deferred.append(partial(self._complete, job, error))
            return
        with self._lock:
            if job.state == DONE:
                message = f"on_complete of {job.name!r} was called, but the function had ended"
                raise EngineError(f"{message}\n  {describe_site(job.site)}")
        try:
            self._end_open(job, error)
        except BaseException:
            self._retry_until_done(Execution._end_open, self, job, error)
            raise
        self._after_entry()

    def _end_open(self, job: Job, error: BaseException | None) -> None:
        """Settle an asynchronous job, unless it is settled already."""
        with self._lock:
            if job.state == DONE:
                return
            if error is not None:
                self._fail(job, error)
            elif self._poisoned:
                job.heal()
            self._open.discard(job)
            self._settle(job)

    def _after_entry(self) -> None:
        """Do what must not be done under the lock, or was put off while it was held.

        One after the other: what is put off is an entry, too, and has this done at its end.
        """
        if not self._deferred or (state := self._state()).catching_up:
            return
        try:
            state.catching_up = True
            self._catch_up()
        finally:
            state.catching_up = False

    def _catch_up(self) -> None:
        """Do all that was put off, if this thread may."""
        while self._deferred and self._gets_out():
            try:
                work = self._deferred.popleft()
            except IndexError:
                return  # another thread does it
            work()
