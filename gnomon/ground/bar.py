"""Progress of long work: a bar on a terminal, a line for each tenth elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Self

WIDTH = 40
PAUSE = 0.1  # seconds between two drawings of a bar


class Bar:
    """How much of `total` pieces of work is done, told on the error output.

    >>> with Bar(3, "packing") as bar:
    ...     for _ in range(3):
    ...         bar.update()
    >>> bar.done
    3
    """

    def __init__(self, total: int, name: str) -> None:
        self.total, self.name, self.done = max(1, total), name, 0
        self._began = self._drawn = time.monotonic()
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_terminal:
            self._draw("\n")

    def update(self) -> None:
        """One more is done."""
        before, self.done = self.done, self.done + 1
        if self._is_terminal:
            if time.monotonic() - self._drawn >= PAUSE:
                self._draw("")
        elif 10 * before // self.total != 10 * self.done // self.total:
            self.say(f"{self.done}/{self.total}")

    def say(self, text: str) -> None:
        """Tell something beside."""
        start = "\r\x1b[K" if self._is_terminal else ""
        print(f"{start}{self.name}: {text}", file=sys.stderr, flush=True)

    def _draw(self, end: str) -> None:
        self._drawn = now = time.monotonic()
        share, rate = self.done / self.total, self.done / max(now - self._began, 1e-9)
        left = (
            f", {(self.total - self.done) / rate:.0f} s left" if 0 < self.done < self.total else ""
        )
        drawn = ("=" * int(WIDTH * share)).ljust(WIDTH)
        text = f"{self.name} [{drawn}] {self.done}/{self.total}, {rate:.0f} a second{left}"
        print(f"\r{text}\x1b[K", end=end, file=sys.stderr, flush=True)
