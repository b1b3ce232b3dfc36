"""Calls that are made again until they come to their end, whatever is raised meanwhile.

A signal's handler may raise an exception between any two instructions of Python on the main thread:
in the clean-up after the one before, too. No `try` in Python keeps the next one out of its own
`except`. So native code makes the call that repairs the engine's state again, where no handler
runs, in every interpreter: from `except BaseException:` to that call there is no instruction at
which one would, and none that takes memory: work is a function of a class, as to bind a method
does. And where memory lacks, Python may not get as far as a function's first
instruction: native code begins a thread's life again then, or its work would be left undone. Where
a recursion came to Python's limit, there would be no room for any repair: it gets some frames more,
and some calls in C more, which Python 3.12 and 3.13 count apart.
"""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import Any

from gnomon.base import GnomonError
from gnomon.native.memory import CFunction
from gnomon.native.serve import compiled
from gnomon.native.words import Ints, native
from gnomon.runtime.statements.fields import calls_left, frames_left

#: `retry_until_done(work, *arguments)`: `work` may be interrupted anywhere and begun anew
RetryUntilDone = Callable[..., None]

TRIES = 1000  # an error that comes each time is the work's own
OWN = 300  # as many tries does one of gnomon's own count for, which no handler is likely to raise
PAUSE = 0.01  # seconds for which a thread that has no memory to begin with lets others go on
ROOM = 200  # frames for a repair

LEFT, CALLS = frames_left() or 0, calls_left() or 0
_thread = CFunction("void * PyThreadState_Get()")


@native
def make_room(frames: int) -> None:
    """Let so many more frames of Python's be on this thread's stack; fewer, to take that back.

    The limit itself is that of all threads: one that has gone beyond it meanwhile would be lost.
    """
    if LEFT != 0:
        left = Ints(_thread() + LEFT)
        left[0] = left[0] + frames
    if CALLS != 0:
        calls = Ints(_thread() + CALLS)
        calls[0] = calls[0] + frames


@native
def call_until_done(work: Any, *arguments: object) -> None:
    """Call `work` until it comes to its end, and raise then what was raised last."""
    last: BaseException | None = None
    tries = 0
    make_room(ROOM)
    while tries < TRIES:
        try:
            work(*arguments)
            break
        except BaseException as error:
            last = error
            tries += OWN if isinstance(error, GnomonError) else 1
    make_room(-ROOM)
    if last is not None:
        raise last


@native
def repair(engine: Any, name: str, job: object, task: object) -> None:
    """Call the method `name` with `job`, and `task` unless it is None, until it comes to its end.

    For native code, whose calls have no frame of its own to come from: where Python 3.11 refused
    one, it would refuse this one too. Code in Python has called something from its frame before.
    """
    raised: BaseException | None = None
    work = getattr(type(engine), name)
    make_room(1)
    try:
        if task is None:
            engine._retry_until_done(work, engine, job)
        else:
            engine._retry_until_done(work, engine, job, task)
    except BaseException as error:
        raised = error
    make_room(-1)
    if raised is not None:
        raise raised


@native
def live(life: Any, *arguments: object) -> None:
    """Call a thread's `life`, again where memory lacks, until it comes to its end."""
    while True:
        try:
            life(*arguments)
            break
        except MemoryError:
            sleep(PAUSE)


def retry_until_done() -> RetryUntilDone:
    """The native function that repairs."""
    return compiled(call_until_done, live)[0]


def lived() -> Callable[..., None]:
    """The native function to start threads with."""
    return compiled(call_until_done, live)[1]
