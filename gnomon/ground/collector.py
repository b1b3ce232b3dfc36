"""Python's collector of cycles, which rests during imports and while graphs are bound and planned.

That makes objects by the hundred thousand, and nearly all stay: the collector's passes over them
find nothing, and take an eighth of the time of imports, a fifth of that of binding a ResNet-50, and
two thirds for large expressions.
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


def keep() -> None:
    """Count what there is as old at once: passes over the young skip what modules hold for good.

    Not where a program has frozen objects, which would be thawed.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def wake_in_child() -> None:
    """In a forked child: end the rest that another thread of the parent's has begun."""
    if _turn.acquire(blocking=False):  # it is free, or this thread's
        _turn.release()
    else:
        _turn._at_fork_reinit()  # type: ignore[attr-defined]
        gc.enable()
