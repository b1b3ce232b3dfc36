"""A call that is made again until it comes to its end, whatever signals' handlers raise meanwhile.

A handler may raise an exception between any two instructions of Python on the main thread: in the
clean-up after the one before, too. No `try` in Python keeps the next one out of its own `except`.
So native code makes the call that repairs the engine's state again, where no handler runs, in every
interpreter: from `except BaseException:` to that call there is no instruction at which one would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.native.serve import compiled
from gnomon.native.words import native

#: `retry_until_done(work, *arguments)`: `work` may be interrupted anywhere and begun anew
RetryUntilDone = Callable[..., None]

TRIES = 1000  # an error that comes each time is the work's own


@native
def call_until_done(work: Any, *arguments: object) -> None:
    """Call `work` until it comes to its end, and raise then what was raised last."""
    last: BaseException | None = None
    for _ in range(TRIES):
        try:
            work(*arguments)
            break
        except BaseException as error:
            last = error
    if last is not None:
        raise last


def retry_until_done() -> RetryUntilDone:
    """The native function."""
    return compiled(call_until_done)
