"""Python's collector of cycles, which rests while graphs are bound and kernels planned.

That makes objects by the hundred thousand, and nearly all stay: the collector's passes over them
find nothing, and take a fifth of the time (binding a ResNet-50; two thirds for large expressions).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from gnomon.ground.lock import in_child, reentrant, renew

_turn = reentrant()  # of the thread that has switched it off: what another finds is not to last


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


def _in_child() -> None:
    """In a forked child: end the rest that another thread of the parent's has begun."""
    if _turn.acquire(blocking=False):  # it is free, or this thread's
        _turn.release()
    else:
        renew(_turn)
        gc.enable()


in_child(_in_child)
