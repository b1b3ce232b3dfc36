"""Work that a signal's handler interrupts wherever it falls, over and over."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable


def interruptions(work: Callable[[], object], is_taken: Callable[[], object]) -> int:
    """How often a second of `work()` was interrupted; nothing is ever taken behind it."""
    armed, interrupts = False, 0

    def interrupt(*_: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-4)
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                armed = True
                work()
                armed = False
            except InterruptedError:
                interrupts += 1
            assert not is_taken()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(1e-3)  # a late one is not for the handler before, which ends tests
        signal.signal(signal.SIGALRM, before)
    return interrupts
