"""Tells that kernels are being compiled, where that takes long: a user who waits wants to know why.

State: a *burst* is what is compiled without a pause of `PAUSE` seconds between. When a burst has
compiled for `FIRST` seconds, it is told how many kernels that were, and how many steps of the
program being bound are left; again each time it has compiled four times as long. On a terminal a
line goes to stderr, elsewhere to the logger `gnomon`. The setting `tell_compiling` silences it.
Threads that compile at once may lose a count.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gnomon import config

FIRST = 1.0  # seconds
PAUSE = 1.0
_LOG = logging.getLogger("gnomon")


class Progress:
    """What was compiled in this burst, and what is known to be left."""

    def __init__(self) -> None:
        self.left = 0
        self._kernels, self._seconds, self._told, self._ended = 0, 0.0, FIRST, 0.0

    @contextmanager
    def expecting(self, steps: int) -> Iterator[None]:
        """Inside, so many steps of a program are made; `ready` counts them."""
        before, self.left = self.left, self.left + steps
        try:
            yield
        finally:
            self.left = before

    def ready(self) -> None:
        """One of the expected steps is made."""
        self.left = max(0, self.left - 1)

    def compiled(self, seconds: float) -> None:
        """A kernel was compiled just now, in so many seconds."""
        now = time.perf_counter()
        if now - seconds - self._ended > PAUSE:
            self._kernels, self._seconds, self._told = 0, 0.0, FIRST
        self._kernels += 1
        self._seconds += seconds
        self._ended = now
        if self._seconds >= self._told:
            self._told = 4 * self._seconds
            tell(self._kernels, self.left)


def tell(kernels: int, left: int) -> None:
    """Say it, unless the settings say otherwise."""
    if not config.get("tell_compiling"):
        return
    text = f"compiling: {kernels} kernels" + (f", {left} steps left" if left else "")
    try:
        shown = sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        shown = False
    if shown:
        print(f"gnomon: {text}", file=sys.stderr)
    else:
        _LOG.info(text)


PROGRESS = Progress()
