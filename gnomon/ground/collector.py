"""Python's collector of cycles, which rests during imports and while graphs are bound and planned.

That makes objects by the hundred thousand, and nearly all stay: the collector's passes over them
find nothing, and take a fifth of the time of binding a ResNet-50, and two thirds for large
expressions.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# of the thread that has switched it off: what another finds is not to last
_turn = threading.RLock()


@contextmanager
def resting(wanted: bool = True) -> Iterator[None]:
    """A scope in which the collector does not start by itself, unless another thread wants it to.

    >>> import gc
    >>> with resting():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    taken: list[bool] = []
    try:
        if wanted and gc.isenabled():
            taken.extend(filter(_turn.acquire, (False,)))  # taken and noted in one call
            if taken:
                gc.disable()
        yield
    finally:
        if taken:
            gc.enable()
            _turn.release()


@contextmanager
def importing() -> Iterator[None]:
    """A scope of imports, in one thread at a time: nothing is collected by itself meanwhile.

    The switch stays as it is, for other threads may turn it; what modules hold for good counts as
    old at once, so that passes over the young skip it. Not where a program has frozen objects,
    which would be thawed.

    >>> with importing():
    ...     gc.isenabled(), gc.get_threshold()[0]
    (True, 0)
    """
    before = gc.get_threshold()
    gc.set_threshold(0, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == 0:  # the program has set no other one
            gc.set_threshold(*before)
    if not gc.get_freeze_count():
        try:
            gc.freeze()
        finally:
            gc.unfreeze()


def wake_in_child() -> None:
    """In a forked child: end the rest that another thread of the parent's has begun."""
    if _turn.acquire(blocking=False):  # it is free, or this thread's
        _turn.release()
    else:
        _turn._at_fork_reinit()  # type: ignore[attr-defined]
        gc.enable()
