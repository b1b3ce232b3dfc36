"""What the simulated driver has in its queues: streams, pieces of work, and marks in these."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from gnomon.ground.record import record
from gnomon.runtime.devices.cuda.simulated_memory import Work

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda.simulated_graph import Capture


@record(frozen=False)
class Task:
    """A piece of work in its stream: `run` does it, where `ready` does not wait."""

    work: Work
    run: Callable[[], None]
    ready: Callable[[], bool]


@record(frozen=False, eq=False)
class Stream:
    context: int
    number: int
    tasks: deque[Task]
    clock: dict[int, int]  # what work given now knows to be done
    capture: Capture | None = None


@record(frozen=False, eq=False)
class Event:
    """A mark in a stream; what comes before it is done when nothing is pending."""

    clock: dict[int, int]
    pending: list[Task]  # the record, until it is done
