"""Whether this thread records what it computes, and whether it trains: two flags a thread."""

from __future__ import annotations

import threading


class Mode(threading.local):
    """The flags of one thread; both are off at first."""

    recording = False
    training = False


mode = Mode()
