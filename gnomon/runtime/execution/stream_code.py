"""The stream's native functions: a ring of tasks, run in order by who holds the baton.

HEAD counts the tasks that were entered, DONE those that are over; the ring has those between. One
baton: who takes BATON runs the task that is next and gives it back, be it the stream's own thread
or one that waits and helps. None of them touches an object of Python's.

States of the stream's thread: *running* a task; *looking*, where there is none, SPINS times;
*asleep* in ASLEEP, from where `wake` brings it. A plain wake often puts a thread on the waker's own
core while another one is halted, and it would begin when the waker sleeps; so where both had the
same core, it is moved to the others first. It is not woken for little: a waiting thread runs that.
Who waits helps, else looks for a moment, else sleeps on SIGNAL, counted in WAITERS, in slices of
50 ms, so that Python's signal handlers get their turn.

No wake-up is lost: ASLEEP and the baton, WAITERS and DONE are written in one order by one side and
read in the other by the other, all of it sequentially consistent. A fork *holds* the stream: it
takes the baton and keeps it.
"""

from __future__ import annotations

from gnomon.native.memory import (
    CFunction,
    Int32,
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
from gnomon.runtime.execution.thread_code import (
    ALL,
    FUTEX,
    FUTEX_WAIT,
    SIG_SETMASK,
    mask_signals,
    now,
    pthread_create,
    pthread_detach,
    pthread_sigmask,
    rouse,
    syscall,
)

ROOM = 1024  # tasks that may be pending
MOST = (1 << 63) - 1
SLICE = 50_000_000  # ns of a sleep
HELP = 20_000_000  # ns of help, before signals' handlers get their turn
CORES = 1024  # that a set of them has
OVER, AGAIN, STANDS = range(3)  # what a wait answers

RING = shared(Words, ROOM)
HEAD = shared(Words)
DONE = shared(Words)
BATON = shared(Ints)
HALTED = shared(Ints)
HELD = HALTED + 1  # on one line: both are read together
ASLEEP = shared(Ints)
SIGNAL = shared(Ints)
WAITERS = shared(Ints)
NOTHING = Words(id(None))

sched_getcpu = CFunction("int sched_getcpu()")
sched_getaffinity = CFunction("int sched_getaffinity(int, long, void *)")
pthread_setaffinity = CFunction("int pthread_setaffinity_np(void *, long, void *)")
as_integer = CFunction("long PyLong_AsLongLong(void *)")
no_memory = CFunction("void * PyErr_NoMemory()")
take = CFunction("void Py_IncRef(void *)")


class Record(Struct):
    """A task, as it stands in the ring: pairs of an address and a word to put there come last."""

    function: int
    block: int
    status: int  # the address of its int32
    before: int  # how many pairs are put before it runs, and after
    after: int
    begin: int  # when it ran, in ns of CLOCK_MONOTONIC
    end: int
    code: int  # its status: not zero if it failed, and the stream halts until `revive`
    skip: int  # whether to leave it out
    work: int  # how long it takes, estimated (see `division.GRAIN`)
    number: int  # `enter` sets it: it is over when DONE is that


class Thread(Struct):
    """The stream's own thread."""

    started: int  # 1: there is one; 2: none was to be had
    handle: int
    core: Int32  # where it was last
    spins: int
    threshold: int  # of pending work, from which on it is woken
    load: int  # the work of what is pending


class Wait(Struct):
    """What to wait for, the most work to help with, and what came of it."""

    number: int
    most: int
    answer: int


THREAD = shared(Thread, 6)
THREAD.core = -1
LOAD = THREAD + Thread.load


# --- running ----------------------------------------------------------------------------------


@native
def put_words(pairs: Words, count: int) -> Words:
    """Puts words where pairs say; gives where the next pairs are."""
    at = pairs
    for _ in range(count):
        Words(at[0])[0] = at[1]
        at = at + 2
    return at


@native
def perform(task: Record) -> None:
    """Runs a task, and tells of its time and status."""
    rest = put_words(Words(task.address + 8 * (Record.number + 1)), task.before)
    begin = now()
    call(task.function, task.block)
    task.end = now()
    task.begin = begin
    status = Ints(task.status)[0]
    task.code = status
    put_words(rest, task.after)
    if status != 0:
        store(HALTED, 1)


@native
def next_task() -> Record:
    """The task that is next, of those that may run; null for none."""
    done = load(DONE)
    if done < load(HEAD) and load(HALTED) == 0 and load(HELD) == 0:
        return Record(RING[done & (ROOM - 1)])
    return Record(0)


@native
def waits() -> bool:
    """Whether a task may run which is not running."""
    return load(BATON) == 0 and next_task().address != 0


@native
def run_next(most: int) -> bool:
    """Runs the next task, if none is running and it takes no longer than `most`; whether it did."""
    if load(BATON, "monotonic") != 0 or not swap(BATON, 0, 1):
        return False
    task = next_task()
    if task.address == 0 or task.work > most:
        store(BATON, 0)
        return False
    work = task.work
    if task.skip == 0:
        perform(task)
    add(LOAD, -work)
    add(DONE, 1)
    store(BATON, 0)
    if load(WAITERS) != 0:
        add(SIGNAL, 1)
        rouse(SIGNAL, ALL)
    return True


# --- the stream's thread ----------------------------------------------------------------------


@native
def place() -> None:
    """Moves the stream's thread to other cores than this one, if it was here last."""
    here = sched_getcpu()
    if here != THREAD.core or here < 0 or here >= CORES:
        return
    cores = scratch(16)
    for k in range(16):
        cores[k] = 0
    if sched_getaffinity(0, 128, cores) < 0:
        return
    cores[here >> 6] = cores[here >> 6] & ~(1 << (here & 63))
    some = 0
    for k in range(16):
        some |= cores[k]
    if some != 0:
        pthread_setaffinity(THREAD.handle, 128, cores)


@native
def wake() -> None:
    """Brings the stream's thread back from its sleep."""
    if load(ASLEEP) == 1 and swap(ASLEEP, 1, 0):
        place()
        rouse(ASLEEP, 1)


@native
def serve(unused: int) -> None:
    while True:
        if run_next(MOST):
            THREAD.core = sched_getcpu()
        elif not finds_task():
            store(ASLEEP, 1)
            if not waits():
                syscall(FUTEX, ASLEEP, FUTEX_WAIT, 1, 0)
            store(ASLEEP, 0)


@native
def finds_task() -> bool:
    """Whether there is a task within a few looks."""
    for _ in range(THREAD.spins):
        if waits():
            return True
        pause()
    return False


@native
def start() -> None:
    """Starts the stream's thread, without signals, which are for the threads of Python."""
    if THREAD.started != 0:
        return
    old = scratch(16)
    mask_signals(old)
    failed = pthread_create(THREAD + Thread.handle, None, address_of(serve), 0)
    pthread_sigmask(SIG_SETMASK, old, None)
    THREAD.started = 1 if failed == 0 else 2
    if failed == 0:
        pthread_detach(THREAD.handle)


@native
def stream_entered(task: Record) -> bool:
    """Has a task come after all others; False where there is no room. With Python's lock."""
    head = load(HEAD)
    if head - load(DONE) >= ROOM:
        return False
    RING[head & (ROOM - 1)] = task.address
    task.number = head + 1
    work = task.work
    before = add(LOAD, work)
    store(HEAD, head + 1)
    start()
    if before + work >= THREAD.threshold:
        wake()
    return True


@native
def stream_enter(me: int, arguments: Words, count: int) -> int:
    """enter(address): a task comes after all others; None. Python calls it."""
    if not stream_entered(Record(as_integer(arguments[0]))):
        return no_memory()
    take(NOTHING)
    return NOTHING.address


# --- waiting ----------------------------------------------------------------------------------


@native
def doze(number: int) -> bool:
    """Sleeps until the next task is over, for a slice at most; whether it slept undisturbed."""
    time = scratch(2)
    time[0] = 0
    time[1] = SLICE
    seen = load(SIGNAL)
    add(WAITERS, 1)
    woken = 0
    if load(DONE) < number and load(HALTED) == 0:
        woken = syscall(FUTEX, SIGNAL, FUTEX_WAIT, seen, time)
    add(WAITERS, -1)
    return woken == 0


@native
def stream_wait(wait: Wait) -> None:
    """Waits for a task; AGAIN is the answer where signals' handlers are to have their turn."""
    most = MOST if THREAD.started == 2 else wait.most
    begin = now()
    looks = 0
    wait.answer = OVER
    while load(DONE) < wait.number:
        # one that fails halts the stream before it counts as done: then it is about to be over
        stands = load(HALTED) != 0 and (load(BATON) == 0 or load(HELD) != 0)
        if stands and load(DONE) < wait.number:
            wait.answer = STANDS
            return
        if run_next(most):
            looks = 0
            if now() - begin > HELP:
                wait.answer = AGAIN
                break
        else:
            if waits():
                wake()  # it is too long to help with
            pause()
            looks += 1
        if looks >= THREAD.spins:
            looks = 0
            if not doze(wait.number):
                wait.answer = AGAIN
                break
    if waits() and load(LOAD) >= THREAD.threshold:
        wake()  # others run the rest, where that is much


@native
def stream_hold(unused: int) -> None:
    """From now on no task runs; a signal's handler may fork amidst a fork, where it is held."""
    if swap(HELD, 0, 1):
        while not swap(BATON, 0, 1):
            doze(MOST)


@native
def stream_let_go(unused: int) -> None:
    """Goes on after `hold`."""
    if swap(HELD, 1, 0):
        store(BATON, 0)
        if waits():
            wake()


@native
def stream_revive(unused: int) -> None:
    """Goes on after a task that failed."""
    store(HALTED, 0)
    if waits():
        wake()


@native
def stream_renew(unused: int) -> None:
    """In a forked child: no task, no thread."""
    store(HEAD, load(DONE))
    store(LOAD, 0)
    store(WAITERS, 0)
    store(ASLEEP, 0)
    THREAD.started = 0
    store(HALTED, 0)
    store(HELD, 0)
    store(BATON, 0)


FUNCTIONS = (
    stream_enter, stream_entered, stream_wait, stream_hold, stream_let_go, stream_revive,
    stream_renew,
)  # fmt: skip
