"""What a profile is made of: spans, counts and marks, in the order they ended.

State: `events` grows while a profile runs; appending is one step of the interpreter, so that any
thread may do it. Times are those of `time.perf_counter`.
"""

from __future__ import annotations

import threading
from dataclasses import field
from typing import NamedTuple

from gnomon.engine.behind import telling
from gnomon.ground.record import record

STREAM = 0  # in the place of a thread's number, for the stream's thread


class Span(NamedTuple):
    """Something that took time on a thread; kernels know the bytes they move and their flops."""

    category: str
    name: str
    thread: int
    begin: float
    end: float
    bytes: int = 0
    flops: int = 0


class Stretch(NamedTuple):
    """Something of the user's that took time, whatever the threads did: a task, a frame."""

    category: str
    name: str
    begin: float
    end: float


class Count(NamedTuple):
    """A counter's value from a moment on."""

    category: str
    name: str
    time: float
    value: float


class Mark(NamedTuple):
    """A moment; `scope` is 'global', 'process' or 'thread'."""

    category: str
    name: str
    thread: int
    time: float
    scope: str


Happening = Span | Stretch | Count | Mark


@record(frozen=False, slots=False)
class Record:
    """Everything of one profile."""

    events: list[Happening] = field(default_factory=list)
    threads: dict[int, str] = field(default_factory=dict)
    summed: int = 0  # how many of the events no sum counts any more

    def here(self) -> int:
        """The number of the thread that is told of; its name is kept."""
        if telling.behind:
            self.threads[STREAM] = "stream"
            return STREAM
        ident = threading.get_native_id()
        if ident not in self.threads:
            self.threads[ident] = threading.current_thread().name
        return ident

    def sum_anew(self) -> None:
        """Have sums begin here; the trace keeps all."""
        self.summed = len(self.events)
