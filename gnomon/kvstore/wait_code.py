"""Waiting for MPI and heartbeats: what runs long without Python's lock.

`await_request` has MPI look at all requests at once until one is complete, the wake word is set, or
it has looked `rounds` times: each look is one turn of MPI's own work, which costs calls of the
system, however many requests there are. It sleeps between rounds, but for the first `spins`. It
never just offers its core to others: a thread that does so gets it back after whole slices of
theirs, one that sleeps at once.

`beat` sends one byte to every socket, sleeps, and so on until the stop word is set. A socket that
takes no byte now gets none. Sockets may be added meanwhile.
"""

from __future__ import annotations

from gnomon.native.memory import CFunction, Int32, Struct, load
from gnomon.native.words import Words, native

STATUS_WORDS = 16  # more than any MPI's status takes

nanosleep = CFunction("int nanosleep(void *, void *)")
send = CFunction("long send(int, void *, long, int)")
#: MPI's own: it lets go of the request that is complete, and its handle becomes that of none
test_any = CFunction("int test_any(int, void *, void *, void *, void *)")


class Wait(Struct):
    """What to wait for, and how long; MPI writes index, flag and status."""

    wake: int
    count: int
    handles: int
    rounds: int
    spins: int
    seconds: int
    nanoseconds: int
    error: int  # MPI's, of a look
    flag: Int32
    index: int
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
    handles = Words(wait.handles)
    index = wait + Wait.index
    flag = wait + Wait.flag
    status = wait + Wait.status
    wait.error = 0
    for k in range(wait.rounds):
        if load(wait + Wait.wake, "acquire"):
            return
        wait.flag = 0
        wait.error = test_any(wait.count, handles, index, flag, status)
        if wait.error != 0 or wait.flag != 0:
            return
        if k >= wait.spins and k + 1 < wait.rounds:
            nanosleep(wait + Wait.seconds, None)


@native
def beat(beat: Beat) -> None:
    while not load(beat + Beat.stop, "acquire"):
        for i in range(load(beat + Beat.count, "acquire")):
            send(Words(beat.sockets)[i], beat + Beat.byte, 1, beat.flags)
        nanosleep(beat + Beat.seconds, None)
