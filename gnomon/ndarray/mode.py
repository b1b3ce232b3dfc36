"""Whether this thread records what it computes, and whether it trains: two flags a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Mode(threading.local):
    """The flags of one thread; both are off at first."""

    recording = False
    training = False


mode = Mode()


@contextmanager
def recording(flag: bool) -> Iterator[None]:
    """A scope that records, or not."""
    before, mode.recording = mode.recording, flag
    try:
        yield
    finally:
        mode.recording = before
