"""The threaded engines: users' functions on workers, gnomon's short kernels where they are ready.

Policy, and why. Handing 50 us of work to a worker while the pushing thread is busy in Python costs
12 to 18 ms of latency, whatever the interpreter's switch interval. So a short kernel that is ready
at its push runs on the pushing thread, without a detour through a queue; what its end makes ready
runs next on the same thread if it is such a kernel too (a loop over a backlog, never a recursion),
else it goes to its work_queue. A user's function may block or take long and always goes to a
worker.

A worker that sleeps in a wait of the engine gives its place to an extra one. One that sleeps in
anything else, as for a thread of its own that waits in turn, cannot be told from one that works. So
while a thread waits, nothing comes to its end and jobs lie ready, extra workers are started, eight
of them a tenth of a second apart, the next ones ever later; they end when the wait does.

A worker takes the lock once per function: it settles the one it ran and takes the next. Threads
are daemons, so that a function that never returns cannot keep the interpreter from ending;
`lifecycle.py` waits for the work itself.
"""

from __future__ import annotations

import logging
import threading
from _thread import start_new_thread
from functools import partial
from operator import attrgetter
from typing import Any

from gnomon import config
from gnomon.base import EngineError
from gnomon.context import Context, cpu
from gnomon.engine.backlog import Backlog
from gnomon.engine.behind import Behind, is_operator, waits
from gnomon.engine.bulk import Bulk, is_plain
from gnomon.engine.failure import push_site
from gnomon.engine.job import HERE, WAITING, Job
from gnomon.engine.thread import ThreadState
from gnomon.engine.turns import Turns, in_python, native_turns
from gnomon.engine.work_queue import WorkQueue

log = logging.getLogger("gnomon.engine")

Key = tuple[int, int, bool]  # device type and number, whether for copies

_CPU = cpu(0)
_COPY_WORKERS = 1
_MANY = 1000  # functions, after which native code pays where there is no worker yet
_DEVICE_WORKERS = 2  # a device works by itself; these only start its work


class ThreadedEngine(Behind):
    """One set of workers for everything; `workers` of them, `config.cpu_workers` by default."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers
        self._turns: Turns = in_python  # until there is a worker
        super().__init__()
        self._usual = type(self) in (ThreadedEngine, ThreadedEnginePerDevice)

    def _clear(self) -> None:
        super()._clear()
        self._work_queue = None
        self._work_queues: dict[Key, WorkQueue] = {}
        self._hiring = []
        self._bulking = False

    # --- pushes ---------------------------------------------------------------------------------

    def _push(self, job: Job) -> None:
        if self._lock._is_owned() and not self._gets_out():
            self._deferred.append(partial(self._push, job))
            return
        if self._late is not None:
            self._enter_here(None)
        if self._behind:
            self._collect()
        try:
            with self._lock:
                if self._bulking and self._collected(job):
                    return
                if self._admit(job):
                    self._dispatch(job)
            if self._hiring or self._deferred:
                self._after_entry()
        except BaseException:
            self._retry_until_done(ThreadedEngine._abandon, self, job)
            raise

    def _abandon(self, job: Job) -> None:
        """An interrupt ended a push: unless the job is on its way already, it never was."""
        with self._lock:
            if job.state == WAITING:
                self._withdraw(job)
            self._put_right()
        self._after_entry()

    def _push_inline(self, job: Job) -> None:
        if self._lock._is_owned() and not self._gets_out():
            job.site = push_site()
            self._deferred.append(partial(self._push_inline, job))
            return
        if self._late is not None:
            self._enter_here(None)
        if self._goes_behind(job):
            return
        if self._pending and is_operator(job) and waits(job):
            self._make_room()
        self._enter_here(job)

    def _enter_here(self, job: Job | None) -> None:
        """Enter a short kernel, or what was held back; run it, unless this thread runs one now."""
        if job is None and self._behind and (late := self._late) and self._goes_behind(late, True):
            return
        if self._settled >= _MANY and self._turns is in_python and self._usual:
            self._turns = native_turns(ThreadedEngine)
        state = self._state()
        bouncing = state.bouncing
        try:
            with self._lock:
                if self._bulk is not None:
                    self._hand_over_bulk()
                late = self._late
                if job is None and (job := late) is None:
                    return  # another thread did it
                ready = self._admit(job)
                if job is late:
                    self._late = None
                if ready:
                    job.state = HERE
                    state.backlog.append(job)
                else:
                    job.site = push_site()
                if not ready and is_operator(job):
                    self._queued.add(job)
            if not bouncing:
                self._bounce(state, False)
        except BaseException:
            self._retry_until_done(Backlog._give_away, self, state, bouncing)
            raise
        if self._hiring or self._deferred:
            self._after_entry()

    def _go_on(self, job: Job, state: ThreadState, raised: BaseException | None) -> None:
        """Go on where native code called an inline job's function, which may have `raised`.

        It is called again where an interrupt ends it while the thread is still `bouncing`.
        """
        if raised is not None and job.failure is None:
            self._bring_to_end(job, raised)
        if job not in state.hand:
            state.hand.append(job)
        state.job = job.outer
        self._bounce(state, False, job)
        if self._hiring or self._deferred:
            self._after_entry()

    # --- bulk -----------------------------------------------------------------------------------

    def _collected(self, job: Job) -> bool:
        """Whether a job was put into a bulk. Lock held."""
        state = self._state()
        if self._bulk is not None and not self._bulk.accepts(job, state):
            self._hand_over_bulk()
        if state.bulk_size < 2 or not is_plain(job):
            return False
        if self._bulk is None:
            self._bulk = Bulk(state, job)
        else:
            self._bulk.jobs.append(job)
        if self._bulk.full:
            self._hand_over_bulk()
        return True

    def _hand_over_bulk(self) -> None:
        """Push the open bulk as one job. Lock held."""
        if self._bulk is None:
            return
        job = self._bulk.joined()
        ready = self._admit(job)
        self._bulk = None
        if ready:
            self._ready.append(job)
            self._dispatch_ready(None)

    def _hold_back(self, job: Job) -> None:
        if self._state().job is not None or not self._gets_out():
            self._push_inline(job)
            return
        with self._lock:
            alone = self._late is None
            if alone:
                self._late = job
        self._after_entry()
        if not alone:  # another thread holds back at the same time
            self._push_inline(job)

    def _flush(self) -> None:
        if (self._late is None and self._bulk is None) or not self._gets_out():
            return  # amid an entry it may be the very job that is entered
        if self._late is not None:
            self._enter_here(None)
        if self._bulk is not None:
            with self._lock:
                self._hand_over_bulk()
            self._after_entry()

    def set_bulk_size(self, size: int) -> int:
        before = super().set_bulk_size(size)
        with self._lock:
            held = self._bulk is not None  # perhaps by a thread that is no more
            self._bulking = held or any(map(attrgetter("bulk_size"), self._states))
        return before

    # --- work queues and workers ------------------------------------------------------------------

    def _queue_of(self, job: Job) -> WorkQueue:
        """The work queue a job belongs to: here one for all. Lock held."""
        if self._work_queue is None:
            self._work_queue = self._queue_at(_CPU, False)
        return self._work_queue

    def _dispatch(self, job: Job) -> None:
        work_queue = self._work_queue if job.ctx is None and not job.copy else None
        if work_queue is None:
            work_queue = self._queue_of(job)
        work_queue.put(job)

    def _queue_at(self, ctx: Context, copy: bool) -> WorkQueue:
        """The work queue of a device; a new one gets threads when the lock is free. Lock held."""
        key = ctx.device_typeid, ctx.device_id, copy
        work_queue = self._work_queues.get(key)
        if work_queue is None:
            work_queue = self._work_queues[key] = self._new_work_queue(ctx, copy)
            self._hiring.append(work_queue)
        return work_queue

    def _new_work_queue(self, ctx: Context, copy: bool) -> WorkQueue:
        """A work_queue without threads."""
        if copy:
            return WorkQueue(f"{ctx} copy", _COPY_WORKERS)
        if ctx.device_type == "gpu":
            return WorkQueue(str(ctx), _DEVICE_WORKERS)
        return WorkQueue(str(ctx), self._workers or config.get("cpu_workers"))

    def _after_entry(self) -> None:
        if self._hiring and self._gets_out():
            self._hire()
        super()._after_entry()

    def _hire(self) -> None:
        """Start the threads that work queues lack."""
        if self._usual:  # compiles under the lock of first uses, which a fork takes before ours
            self._turns = native_turns(ThreadedEngine)
        with self._lock:
            self._start_threads()

    def _start_threads(self) -> None:
        """Start what `_hiring` asks for. Lock held."""
        while self._hiring:
            work_queue = self._hiring[-1]
            if work_queue.missing <= 0 or not self._start_thread(work_queue):
                self._hiring.pop()

    def _start_thread(self, work_queue: WorkQueue) -> bool:
        """Start one thread, if there is one to be had; no gap for an interrupt. Lock held."""
        try:
            work_queue.threads += 1
            start_new_thread(self._live, (self._serve, work_queue))
        except RuntimeError as error:
            work_queue.threads -= 1
            if work_queue.threads:
                return False  # those that there are will do
            raise EngineError(f"the engine cannot start a thread: {error}") from error
        return True

    def _serve(self, work_queue: WorkQueue) -> None:
        """A worker's life. Where memory lacks for a step of it, that is done again."""
        state: ThreadState | None = None
        failed: BaseException | None = None
        while True:
            try:
                if state is None:
                    threading.current_thread().name = f"gnomon {work_queue.name}"
                    state = self._state()
                    state.work_queue = work_queue
                self._stand_up(work_queue, state)
                told, failed = failed, None
                if told is not None and not isinstance(told, MemoryError):
                    log.error("a worker of the engine goes on after:", exc_info=told)
                del told  # with what its frames hold
                self._work(work_queue, state)
                return
            except BaseException as error:
                failed = error  # no more than that: nothing may end this thread

    def _stand_up(self, work_queue: WorkQueue, state: ThreadState) -> None:
        """Let go of the lock, and be none of those who sleep."""
        while self._lock._is_owned():
            self._lock.release()
        with self._lock:
            if state.gate in work_queue.idle:
                if not state.gate.acquire(blocking=False):  # else it was to wake up
                    work_queue.idle.remove(state.gate)
                else:
                    work_queue.awake(state.gate)

    def _work(self, work_queue: WorkQueue, state: ThreadState) -> None:
        """Settle what it ran, take what is next, sleep when there is nothing, as long as it lives.

        It takes the lock by hand, at half the price of `with`: no signal's handler runs here.
        """
        lock = self._lock
        while True:
            job = self._take_turns(work_queue, state)
            if job is None:
                if (state.done is not None or self._ready) and not work_queue.orphaned:
                    self._finish(state)
                lock.acquire()
                if work_queue.orphaned:
                    lock.release()
                    return
                job = state.done = work_queue.take()
                if job is None and not self._rest(work_queue, state):
                    lock.release()
                    return
                if work_queue.idle and not work_queue.waking:
                    work_queue.wake()
                lock.release()
            if self._hiring or self._deferred:
                self._look_after()
            if job is None:
                state.gate.acquire()
                lock.acquire()
                work_queue.awake(state.gate)
                lock.release()
            elif not self._execute(job, state):
                state.done = None
            job = None  # its last reference is to go while no other is in hand

    def _look_after(self) -> None:
        """As `_after_entry`, but what it raises is logged: this thread has a job in hand."""
        try:
            self._after_entry()
        except BaseException:
            self._retry_until_done(log.exception, "what a worker had to look after failed:")

    def _take_turns(self, work_queue: WorkQueue, state: ThreadState) -> Job | None:
        """Settle, take and run by native code as long as all is usual; a job that it only took."""
        while True:
            try:
                job: Any = self._turns(self, work_queue, state)
            except BaseException as exception:
                failed = state.job
                if failed is None:  # else it is of the function that ran last
                    raise
                try:
                    self._bring_to_end(failed, exception)
                finally:
                    state.done, state.job = failed, None
            else:
                if job is not True:
                    taken: Job | None = job
                    return taken

    def _finish(self, state: ThreadState) -> None:
        """Settle what a worker ran. It goes without the lock: its finalisers may wait."""
        done = state.done
        with self._lock:
            if done is not None:
                self._leave(done)
                state.done = None
            if self._ready:
                self._dispatch_ready(None)
            if not self._pending and self._sleepers:
                self._wake_sleepers()

    def _rest(self, work_queue: WorkQueue, state: ThreadState) -> bool:
        """Nothing to do: whether to sleep, or to end as one too many. Lock held."""
        if work_queue.closed or work_queue.missing < 0:
            work_queue.threads -= 1
            if work_queue.closed and not work_queue.threads:
                work_queue.ended.release()
            return False
        work_queue.idle.append(state.gate)
        return True

    def stop(self) -> None:
        self.wait_for_all()
        with self._lock:
            served = list(filter(attrgetter("threads"), self._work_queues.values()))
            self._work_queues, self._work_queue = {}, None
            for work_queue in served:
                work_queue.close()
        for work_queue in served:
            work_queue.ended.acquire()

    # --- sleeping -------------------------------------------------------------------------------

    def _before_sleep(self, state: ThreadState) -> None:
        """Do the inline jobs this thread put off, see that all queues move, give up its place."""
        if state.backlog:
            self._bounce(state, state.bouncing)
        with self._lock:
            if state.work_queue is not None:
                state.work_queue.blocked += 1
                if state.work_queue.missing > 0:
                    self._hiring.append(state.work_queue)
            for work_queue in self._work_queues.values():
                work_queue.wake()
            if self._behind:
                self._follow()
        self._after_entry()

    def _relieve(self, state: ThreadState) -> None:
        with self._lock:
            state.relieve(self._work_queues.values(), self._hiring)
        self._after_entry()

    def _after_sleep(self, state: ThreadState) -> None:
        if state.work_queue is None and not state.relieved:
            return
        with self._lock:
            if state.work_queue is not None:
                state.work_queue.blocked -= 1
            state.take_back()

    def _rouse(self) -> None:
        for work_queue in self._work_queues.values():
            work_queue.wake()

    def _waiting_to_run(self) -> list[Job]:
        return [
            *self._behind,
            *(job for work_queue in self._work_queues.values() for job in work_queue.jobs()),
        ]

    def restart(self, why: str) -> None:
        """As the basis does. Workers end; in a forked child there are none."""
        for work_queue in self._work_queues.values():
            work_queue.orphaned = True
        self._settle_behind([], None)
        super().restart(why)


class ThreadedEnginePerDevice(ThreadedEngine):
    """Workers of its own for each device, and others for copies: they never wait for each other."""

    def _queue_of(self, job: Job) -> WorkQueue:
        if job.ctx is None and not job.copy:
            return super()._queue_of(job)
        return self._queue_at(job.ctx or _CPU, job.copy)
