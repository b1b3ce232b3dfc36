"""Waiting for MPI and heartbeats: what runs long without Python's lock.

`await_request` looks at requests in turn until one is complete, the wake word is set, or it has
looked `rounds` times. It sleeps between rounds, but for the first `spins`. It never just offers
its core to others: a thread that does so gets it back after whole slices of theirs, one that sleeps
at once.

`beat` sends one byte to every socket, sleeps, and so on until the stop word is set. A socket that
takes no byte now gets none. Sockets may be added meanwhile.
"""

from __future__ import annotations

from gnomon.native.memory import CFunction, Int32, Struct, load
from gnomon.native.words import Ints, Words, native

STATUS_WORDS = 16  # more than any MPI's status takes

nanosleep = CFunction("int nanosleep(void *, void *)")
send = CFunction("long send(int, void *, long, int)")
#: MPI's own, whose handles are of 32 or 64 bits
get_status = CFunction("int get_status(int, void *, void *)")
get_status_wide = CFunction("int get_status_wide(long, void *, void *)")


class Wait(Struct):
    """What to wait for, and how long; MPI writes the flag and the status."""

    wake: int
    count: int
    handles: int
    wide: int  # a handle has 64 bits
    rounds: int
    spins: int
    seconds: int
    nanoseconds: int
    flag: Int32
    status: int


class Beat(Struct):
    """To whom a byte is sent, and how often."""

    stop: int
    count: int
    sockets: int
    flags: int
    seconds: int
    nanoseconds: int
    byte: int


@native
def await_request(wait: Wait) -> None:
    for k in range(wait.rounds):
        if load(wait + Wait.wake, "acquire"):
            return
        for i in range(wait.count):
            if is_over(wait, i):
                return
        if k >= wait.spins and k + 1 < wait.rounds:
            nanosleep(wait + Wait.seconds, None)


@native
def is_over(wait: Wait, i: int) -> bool:
    """Whether a request is complete, or cannot be asked."""
    wait.flag = 0
    flag = wait + Wait.flag
    status = wait + Wait.status
    if wait.wide:
        failed = get_status_wide(Words(wait.handles)[i], flag, status)
    else:
        failed = get_status(Ints(wait.handles)[i], flag, status)
    return failed != 0 or wait.flag != 0


@native
def beat(beat: Beat) -> None:
    while not load(beat + Beat.stop, "acquire"):
        for i in range(load(beat + Beat.count, "acquire")):
            send(Words(beat.sockets)[i], beat + Beat.byte, 1, beat.flags)
        nanosleep(beat + Beat.seconds, None)
