"""The thread pool's native functions: one entry, and two ways to share a job behind it.

`own_parallel(function, block, tasks)` calls `function(block, task, tasks)` for every task. One job
at a time has the pool: a thread that finds it BUSY (another thread, or a task that calls again)
does its tasks in sequence itself, which cannot hang. So does everybody when THREADS, their number,
is 1.

*own* shares the job among threads of its own. TICKET holds the job's number (high half), the
first task that is not claimed yet and how many there are from it on (16 bits each). The caller
claims the first, workers claim the last: in a job done again, each meets the memory that its core
has in its cache. To claim is to compare-and-swap the whole word, so a thread that comes late never
takes a task of another job; and the job's fields, read after a claim, are stable, because the job
cannot end before that task has. PENDING counts the tasks that are not finished. The caller claims
as well: a worker that wakes up late, or never, costs nothing.

States of a worker: *draining* (claims and runs tasks), *looking* (SPINS times at the ticket, then
for PATIENCE ns, offering its core to others), *asleep* until the job's number changes, counted in
SLEEPERS, or *surplus* (its number is not below THREADS), asleep until that changes. The caller
waits for PENDING in the same way, and says so in WAITING. Both sides of each pair (ticket,
sleepers) and (pending, waiting) are sequentially consistent and `sleep` compares once more before
it sleeps: no wake-up is lost. It sleeps by Linux's futex, elsewhere by one POSIX condition.

*libgomp* hands the job to `GOMP_parallel`: thread t of n takes the tasks t, t+n, t+2n...
"""

from __future__ import annotations

import platform
import signal
import sys
from time import CLOCK_MONOTONIC

from gnomon.native.memory import (
    CFunction,
    Struct,
    add,
    address_of,
    load,
    pause,
    shared,
    store,
    swap,
)
from gnomon.native.words import Ints, Words, call, native, scratch

PATIENCE = 250_000  # ns: outlasts what Python does between two steps of a small network
ALL = 0x7FFFFFFF  # threads to wake
SIG_SETMASK = int(signal.SIG_SETMASK)
FUTEX_WAIT, FUTEX_WAKE = 128, 129  # both private to the process
_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
#: Linux's number of the call, or 0 where there is none
FUTEX = _NUMBERS.get(platform.machine(), 0) if sys.platform == "linux" else 0

THREADS = shared(Ints)
BUSY = shared(Ints)
SPINS = shared(Ints)
TICKET = shared(Words)
NUMBER = Ints(TICKET.address + (4 if sys.byteorder == "little" else 0))  # its high half
CLAIMS = Ints(TICKET.address + (0 if sys.byteorder == "little" else 4))  # its low half
PENDING = shared(Ints)
SLEEPERS = shared(Ints)
WAITING = shared(Ints)
MUTEX = shared(Words, 16)
CHANGED = shared(Words, 16)

syscall = CFunction("long syscall(long, ...)")
sched_yield = CFunction("int sched_yield()")
pthread_create = CFunction("int pthread_create(void *, void *, void *, void *)")
pthread_detach = CFunction("int pthread_detach(void *)")
_clock_gettime = CFunction("int clock_gettime(int, void *)")
pthread_sigmask = CFunction("int pthread_sigmask(int, void *, void *)")
sigfillset = CFunction("int sigfillset(void *)")
_mutex_init = CFunction("int pthread_mutex_init(void *, void *)")
_mutex_lock = CFunction("int pthread_mutex_lock(void *)")
_mutex_unlock = CFunction("int pthread_mutex_unlock(void *)")
_cond_init = CFunction("int pthread_cond_init(void *, void *)")
_cond_wait = CFunction("int pthread_cond_wait(void *, void *)")
_cond_broadcast = CFunction("int pthread_cond_broadcast(void *)")
_gomp_parallel = CFunction("void GOMP_parallel(void *, void *, int, int)")
_thread_number = CFunction("int omp_get_thread_num()")
_team_size = CFunction("int omp_get_num_threads()")
_end_team = CFunction("int omp_pause_resource_all(int)")


class Job(Struct):
    """What to call for each task."""

    function: int
    block: int
    tasks: int
    workers: int  # how many threads there are beside callers


JOB = shared(Job, 4)


# --- time and sleep ---------------------------------------------------------------------------


@native
def now() -> int:
    """Nanoseconds."""
    time = scratch(2)
    _clock_gettime(CLOCK_MONOTONIC, time)
    return time[0] * 1_000_000_000 + time[1]


@native
def sleep(word: Ints, value: int) -> None:
    """Sleep until woken, if the word has this value."""
    if FUTEX != 0:
        syscall(FUTEX, word, FUTEX_WAIT, value, 0)
        return
    _mutex_lock(MUTEX)
    while load(word) == value:
        _cond_wait(CHANGED, MUTEX)
    _mutex_unlock(MUTEX)


@native
def rouse(word: Ints, count: int) -> None:
    """Wake so many that sleep on a word."""
    if FUTEX != 0:
        syscall(FUTEX, word, FUTEX_WAKE, count)
        return
    _mutex_lock(MUTEX)
    _mutex_unlock(MUTEX)
    _cond_broadcast(CHANGED)


@native
def mask_signals(before: Words) -> None:
    """Keep all signals off this thread; `before` gets the mask that it had."""
    every = scratch(16)
    sigfillset(every)
    pthread_sigmask(SIG_SETMASK, every, before)


# --- jobs -------------------------------------------------------------------------------------


@native
def claim_pool(tasks: int) -> bool:
    """Whether the caller has the pool now, for so many tasks."""
    several = load(THREADS, "monotonic") > 1 and tasks > 1 and tasks < 1 << 16
    return several and swap(BUSY, 0, 1, "acquire")


@native
def do_alone(function: int, block: int, tasks: int) -> None:
    for task in range(tasks):
        call(function, block, task, tasks)


@native
def own_parallel(function: int, block: int, tasks: int) -> None:
    if claim_pool(tasks):
        share(function, block, tasks)
        store(BUSY, 0, "release")
    else:
        do_alone(function, block, tasks)


@native
def own_spread(job: Job) -> None:
    own_parallel(job.function, job.block, job.tasks)


@native
def share(function: int, block: int, tasks: int) -> None:
    start_workers()
    JOB.function = function
    JOB.block = block
    JOB.tasks = tasks
    store(PENDING, tasks, "monotonic")
    number = load(TICKET, "monotonic") & ~0xFFFFFFFF
    store(TICKET, number + (1 << 32) | tasks)
    if load(SLEEPERS) != 0:
        rouse(NUMBER, tasks - 1)
    drain(True)
    if not comes(PENDING, -1, False):
        store(WAITING, 1)
        left = load(PENDING)
        while left != 0:
            sleep(PENDING, left)
            left = load(PENDING)
        store(WAITING, 0)


@native
def start_workers() -> None:
    """Start those that are missing, where threads are to be had.

    They take no signals, which are for the threads of Python.
    """
    if JOB.workers + 1 >= load(THREADS, "monotonic"):
        return
    thread = scratch(1)
    old = scratch(16)
    mask_signals(old)
    while JOB.workers + 1 < load(THREADS, "monotonic"):
        if pthread_create(thread, None, address_of(work), JOB.workers + 1) != 0:
            break
        pthread_detach(thread[0])
        JOB.workers = JOB.workers + 1
    pthread_sigmask(SIG_SETMASK, old, None)


@native
def drain(forwards: bool) -> None:
    """Claim tasks and do them, until all are claimed."""
    while True:
        ticket = load(TICKET, "acquire")
        left = ticket & 0xFFFF
        if left == 0:
            return
        # one less, and one further in front
        if not swap(TICKET, ticket, ticket + (0xFFFF if forwards else -1), "acq_rel"):
            continue
        front = (ticket >> 16) & 0xFFFF
        call(JOB.function, JOB.block, front if forwards else front + left - 1, JOB.tasks)
        if add(PENDING, -1) == 1:
            if load(WAITING) != 0:
                rouse(PENDING, 1)
            return


@native
def comes(place: Ints, bits: int, wanted: bool) -> bool:
    """Whether some of the bits of a word are set, or none is, as `wanted`, before patience ends."""
    for _ in range(SPINS[0]):
        if (load(place, "acquire") & bits != 0) == wanted:
            return True
        pause()
    begin = now()
    while (load(place, "acquire") & bits != 0) != wanted:
        sched_yield()
        if now() - begin >= PATIENCE:
            return False
    return True


# --- workers ----------------------------------------------------------------------------------


@native
def work(number: int) -> None:
    while True:
        threads = load(THREADS, "acquire")
        if number >= threads:
            sleep(THREADS, threads)
            continue
        drain(False)
        if not comes(CLAIMS, 0xFFFF, True):
            sleep_between_jobs()


@native
def sleep_between_jobs() -> None:
    add(SLEEPERS, 1)
    ticket = load(TICKET)
    if ticket & 0xFFFF == 0:
        sleep(NUMBER, ticket >> 32)
    add(SLEEPERS, -1)


@native
def own_relax(count: int) -> None:
    for _ in range(count):
        pause()


@native
def own_limit(threads: int) -> None:
    store(THREADS, threads)
    rouse(THREADS, ALL)


@native
def own_renew(unused: int) -> None:
    """In a child: workers did not come along, and another thread may have been amidst a job."""
    if FUTEX == 0:
        _mutex_init(MUTEX, None)
        _cond_init(CHANGED, None)
    store(THREADS, 1)
    store(TICKET, 0)
    store(PENDING, 0)
    store(SLEEPERS, 0)
    store(WAITING, 0)
    JOB.workers = 0
    store(BUSY, 0, "release")


# --- libgomp ----------------------------------------------------------------------------------


@native
def libgomp_parallel(function: int, block: int, tasks: int) -> None:
    if claim_pool(tasks):
        job = Job(scratch(4).address)
        job.function = function
        job.block = block
        job.tasks = tasks
        team = min(tasks, load(THREADS, "monotonic"))
        _gomp_parallel(address_of(do_share), job, team, 0)
        store(BUSY, 0, "release")
    else:
        do_alone(function, block, tasks)


@native
def libgomp_spread(job: Job) -> None:
    libgomp_parallel(job.function, job.block, job.tasks)


@native
def do_share(job: Job) -> None:
    task = _thread_number()
    while task < job.tasks:
        call(job.function, job.block, task, job.tasks)
        task += _team_size()


@native
def libgomp_limit(threads: int) -> None:
    store(THREADS, threads)


@native
def libgomp_end_team(unused: int) -> None:
    """Before a fork: this thread's team ends, so that the child has no thread to miss."""
    _end_team(2)  # omp_pause_hard


@native
def libgomp_renew(unused: int) -> None:
    store(THREADS, 1)
    store(BUSY, 0, "release")


OWN = (own_parallel, own_spread, own_limit, own_renew, own_relax)
LIBGOMP = (libgomp_parallel, libgomp_spread, libgomp_limit, libgomp_renew, libgomp_end_team)
