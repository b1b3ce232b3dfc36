"""Work behind the program: long native work goes to the stream, and is settled when it is over.

A job whose function is native work (see `job.Native`) is *behind* from its entry into the stream
on. It is in the engine's state like any other, and holds or awaits its variables. It may go behind
while others hold those, if all of these are behind as well: the stream runs its tasks in the order
in which they were entered, and whatever such a job waits for comes before it. Work that is short
goes there only where it waits for work behind; all else runs where it is pushed, as ever.

The stream touches no object of Python's, and settles nothing. The thread that next enters the
engine's state does: a push, or a wait, which helps the stream first. Where something else waits for
work behind (a user's function, a thread asleep in a wait), a thread of its own, the *follower*,
sleeps until a task is over and settles it. What a settled job held goes when the lock is free
again.

A task that fails halts the stream. The thread that settles it poisons what depends on it, has the
stream leave that out, and lets it go on.

Operators in Python, and kernels that wait for these, are *queued*: pending, but not behind. A push
waits for the first task where many are pending, and for all that is behind or queued where much
more memory is in use than was with none of it.
"""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from gnomon.context import cpu
from gnomon.engine.backlog import Backlog
from gnomon.engine.failure import push_site
from gnomon.engine.gates import shut_gate
from gnomon.engine.job import BEHIND, DONE, Job
from gnomon.engine.lifecycle import engines
from gnomon.engine.native_behind import most_memory, settling
from gnomon.engine.var import Var, job_of
from gnomon.runtime.devices.pool import in_use, pool_of
from gnomon.runtime.execution import stream

if TYPE_CHECKING:
    from _thread import LockType

    from gnomon.runtime.execution.stream import Task

_CPU = cpu(0)
_memory = pool_of("cpu")
_QUEUED = 4096  # bytes of small objects that a queued operator holds
_LASTING = 1.0  # seconds for which the program's use of memory is not measured anew
_IDLE = 5.0  # seconds after which a follower that has nothing to do ends


class _Telling(threading.local):
    """Whether observers are told of work behind the program in this thread: the stream's, then."""

    behind = False


telling = _Telling()


class Behind(Backlog):
    """An engine whose long native work runs behind the program."""

    def _clear(self) -> None:
        super()._clear()
        self._follower: LockType | None = None  # the gate where it sleeps
        self._base = 0  # the most bytes that were in use while no operator was pending,
        self._since = 0.0  # and from when on

    # --- going behind ---------------------------------------------------------------------------

    def _goes_behind(self, job: Job, late: bool = False) -> bool:
        """Have a job run behind the program, if it is native and long, or waits for such work.

        Where the answer is False, nothing was done. `late`: if it is what is held back still.
        """
        is_long = getattr(job.fn, "is_long", None)
        if is_long is None:
            return False
        if not stream.available():
            if self._behind:  # from before the end began: what waited for it would pile up
                self.let_finish((*job.const, *job.mutate))
            return False
        if self._bulk is not None or (self._late is not None and not late):
            self._flush()
        if self._behind:
            self._collect()
        if not (is_long or waits(job)):
            return False
        if any(map(_is_shared, job.const)) or any(map(_is_shared, job.mutate)):
            self.let_finish((*job.const, *job.mutate))  # others may change it right after
            return False
        task = job.fn.task()
        if task is None:
            return False
        self._make_room()
        job.site = push_site()
        try:
            with self._lock:
                if late and self._late is not job:
                    return True  # another thread did it
                if not all(map(is_certain, job.const)) or not all(map(_is_ours, job.mutate)):
                    return False
                if not stream.available():  # the process has begun to end meanwhile
                    return False
                job.task = task  # here: what was held back another thread may have sent before
                super()._admit(job)
                job.state = BEHIND
                self._behind.append(job)
                stream.enter(task, job.fn.done)
                if late:
                    self._late = None
                if self._sleepers:
                    self._follow()
        except BaseException:
            self._retry_until_done(Behind._call_back, self, job, task)
            raise
        return True

    def _call_back(self, job: Job, task: Task) -> None:
        """An interrupt came while a job went behind as `task`: it is there, or it never was."""
        with self._lock:
            mine = getattr(job, "task", None) is task  # no more, where it was settled meanwhile
            if mine and not task.number:
                if job in self._behind:
                    self._behind.remove(job)
                self._withdraw(job)
            elif self._late is job and (mine or job.state == DONE):
                self._late = None

    def _make_room(self) -> None:
        """Wait until more may be pending: another task, or an operator that waits for its turn."""
        while self._behind and max(len(self._behind), stream.pending()) >= stream.ROOM:
            self._await(self._first())
        used, is_over = self._used(), True
        grown = used > most_memory(self._base)
        if grown:
            is_over, used = self.finish_operators(), self._used()
        if is_over and (self._behind or self._queued):
            return
        if grown and (now := time.monotonic()) - self._since > _LASTING:
            self._base, self._since = 0, now  # what was in use before counts no more
        self._base = max(self._base, used)  # with none pending, the program's own

    def _used(self) -> int:
        """Bytes in use, with an estimate of the small objects that queued operators hold."""
        return in_use(_memory) + len(self._queued) * _QUEUED

    def _count(self, job: Job) -> None:
        if self._gets_out():  # else the push is deferred
            if self._used() > most_memory(self._base):
                self._flush()  # what a bulk holds back would not end
            self._make_room()
        with self._lock:
            self._queued.add(job)

    def _admit(self, job: Job) -> bool:
        ready = super()._admit(job)
        if not ready and self._behind:
            self._follow()
        return ready

    # --- settling -------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Settle what the stream has done, and run here what that makes ready and is short."""
        if not self._behind or self._first() > stream.done() or not self._gets_out():
            return
        state = self._state()
        gone: list[Job] = []
        try:
            if settling.way(self, stream.done()):
                return
            with self._lock:
                self._settle_behind(gone, state.backlog)
        except BaseException:
            self._retry_until_done(Behind._collect_anew, self, gone)
            raise
        gone.clear()  # their memory goes without the lock: finalisers may wait
        if state.backlog and not state.bouncing:
            self._bounce(state, False)
        self._after_entry()

    def _collect_anew(self, gone: list[Job]) -> None:
        """As `_collect`, where an interrupt ended that; others run what is ready."""
        with self._lock:
            self._settle_behind(gone, None)
            self._put_right()

    def _settle_behind(self, gone: list[Job], backlog: deque[Job] | None) -> None:
        """Settle all tasks that are over, in their order. Lock held."""
        behind, over = self._behind, stream.done()
        while behind and (task := behind[0].task) is not None and 0 < task.number <= over:
            job = behind[0]
            if task.failed:
                self._fail_behind(job)
                stream.revive()
            self._leave(job)
            gone.append(job)
            del behind[0]
            begin, end = task.times
            if end:
                task.timed.took(end - begin)
                if task.told is not None or self._observer is not None:
                    self._deferred.append(partial(self._tell, job))
                elif not task.failed:
                    job.task = None
                    task.timed.settled(task)
        if self._ready:
            self._dispatch_ready(backlog)
        if not self._pending and self._sleepers:
            self._wake_sleepers()

    def _fail_behind(self, job: Job) -> None:
        """Poison what a task that failed was to write, and leave out what depends on that."""
        if job.failure is None:
            try:
                assert job.task is not None
                job.task.step.check()
            except Exception as error:
                self._fail(job, error)
        for later in self._behind:
            failure = later.inherited()
            if later is not job and failure is not None and later.task is not None:
                later.poison(failure)
                later.task.skip()

    def _tell(self, job: Job) -> None:
        """Tell observers of a job that ran behind."""
        assert job.task is not None
        telling.behind = True
        try:
            if job.task.told is not None:
                job.task.told()
            if self._observer is not None:
                self._observer(job.name, job.ctx or _CPU, *job.task.times)
        finally:
            telling.behind = False

    # --- waiting --------------------------------------------------------------------------------

    def _first(self) -> int:
        """The number of the task that is next to be settled; 0 where there is none."""
        with self._lock:
            task = self._behind[0].task if self._behind else None
            return 0 if task is None else task.number

    def _await(self, number: int) -> None:
        """Help the stream, or sleep, until the task of that number is over and settled."""
        while not stream.wait(number):
            for engine in list(engines):
                engine._collect()
        self._collect()

    def let_finish(self, variables: Iterable[Var]) -> None:
        """Return when no work behind uses any of these variables."""
        if self._behind:
            with self._lock:
                users = [job for var in variables for job in var.users()]
                numbers = [_number(job) for job in users]
            if number := max(numbers, default=0):
                self._await(number)

    def _let_writes_finish(self, var: Var) -> None:
        if self._behind:
            with self._lock:
                writers = [var.writer, *(e for e in var.queue or () if not isinstance(e, tuple))]
                number = max(_number(job) for job in writers)
            if number:
                self._await(number)

    def finish_behind(self) -> None:
        """Return when all that is behind now is over; other threads may push without an end.

        At once amidst an entry, in which no thread can wait.
        """
        if self._gets_out():
            with self._lock:
                number = max(map(_number, self._behind), default=0)
            if number:
                self._await(number)

    # --- the follower ---------------------------------------------------------------------------

    def _follow(self) -> None:
        """See that what waits for work behind is told of its end. Lock held."""
        gate = self._follower
        if gate is None:
            self._follower = gate = shut_gate()
            try:
                start_new_thread(self._live, (self._trail, gate))
            except BaseException:
                self._follower = None
                raise
        elif gate.locked():
            gate.release()

    def _trail(self, gate: LockType) -> None:
        """The follower's life, which begins anew where memory lacks for a step of it."""
        while self._lock._is_owned():
            self._lock.release()
        threading.current_thread().name = "gnomon follower"
        while True:
            with self._lock:
                awaited = self._pending > len(self._behind)
                number = _number(self._behind[0]) if self._behind and awaited else 0
            if number:
                if not stream.wait(number, helps=False):
                    self._await(number)
                self._collect()
            elif not gate.acquire(timeout=_IDLE) and self._is_idle(gate):
                return

    def _is_idle(self, gate: LockType) -> bool:
        """Whether a follower is not needed any more: then it is none."""
        with self._lock:
            idle = gate.locked()
            if idle and self._follower is gate:
                self._follower = None
            return idle


def _number(job: Job | None) -> int:
    """The number of a job's task; 0 where it is not behind."""
    if job is None or job.state != BEHIND or job.task is None:
        return 0
    return job.task.number


def is_operator(job: Job) -> bool:
    """Whether a short kernel is an operator's: such ones may be repeated, users' may not."""
    return getattr(job.fn, "resumable", False)


def waits(job: Job) -> bool:
    """Whether a job would wait for others if it was entered now."""
    return any(map(_is_written, job.const)) or any(map(_is_used, job.mutate))


def _is_written(var: Var) -> bool:
    """Whether a job writes a variable, or waits for it."""
    return var.writer is not None or bool(var.queue)


def _is_used(var: Var) -> bool:
    """Whether a job holds a variable, or waits for it."""
    return var.writer is not None or bool(var.queue) or bool(var.readers)


def _is_shared(var: Var) -> bool:
    """Whether code outside gnomon may read or write the memory that a variable stands for."""
    return getattr(var, "shared", False)


def is_certain(var: Var) -> bool:
    """Whether the value of a variable is there, or is to come from work behind alone."""
    writer = var.writer
    if var.failure is not None or (writer is not None and writer.state != BEHIND):
        return False
    for entry in reversed(tuple(var.queue or ())):  # a copy: others may change it meanwhile
        if not isinstance(entry, tuple):
            return entry.state == BEHIND  # then all before it are, or it would not
    return True


def _is_ours(var: Var) -> bool:
    """Whether all who use a variable, or wait for it, are behind, and its value is well."""
    if var.failure is not None or (var.writer is not None and var.writer.state != BEHIND):
        return False
    for entry in reversed(var.queue or ()):
        if job_of(entry).state != BEHIND:
            return False
        if not isinstance(entry, tuple):
            return True
    return all(job.state == BEHIND for job in var.readers)
