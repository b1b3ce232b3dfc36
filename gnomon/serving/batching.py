"""The queue of a model: requests wait in it for a worker, and for others to be computed with.

State: jobs in the order they came, by the shapes of their items; `open` until the server stops.
Only jobs of equal shapes make a batch. A group is ready as soon as it fills a batch or its first
job has waited `max_delay_ms`; of those that are, a worker takes the one that has waited longest.
One lock guards all of it; nothing else is done under it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import field
from typing import Any

from gnomon.ground.record import record
from gnomon.serving.model import Options, Shapes
from gnomon.serving.tensors import Values


class FullError(Exception):
    """As many requests wait as may."""


@record(frozen=False, eq=False, slots=False)
class Job:
    """A request that waits for a worker; `answer` is the future that gets its result."""

    inputs: dict[str, Values]
    rows: int
    items: Shapes
    answer: Any
    came: float = field(default_factory=time.monotonic)


class Queue:
    """Jobs for the workers of a model."""

    def __init__(self, options: Options) -> None:
        self._most = options.max_batch if options.batch else 1
        self._delay = options.max_delay_ms / 1000 if self._most > 1 else 0.0
        self._limit = options.queue_limit
        self._changed = threading.Condition()
        self._groups: dict[Shapes, deque[Job]] = {}
        self._count = 0
        self.open = True

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> None:
        """Let a job wait.

        Raises:
            FullError: `queue_limit` jobs do, or the queue is closed.
        """
        with self._changed:
            if self._count >= self._limit or not self.open:
                raise FullError
            group = self._groups.setdefault(job.items, deque())
            group.append(job)
            self._count += 1
            if len(group) == 1 or self._rows(group) >= self._most:
                self._changed.notify()

    def discard(self, job: Job) -> None:
        """Take out a job that is not wanted any more, if no worker has it."""
        with self._changed:
            group = self._groups.get(job.items, ())
            if job in group:
                self._leave(job.items, [job])

    def take(self) -> list[Job]:
        """The next batch, waited for; empty once the queue is closed and nothing waits."""
        with self._changed:
            while True:
                waiting = [(self._left(group), group) for group in self._groups.values()]
                ready = [group for left, group in waiting if left == 0]
                if ready:
                    return self._cut(min(ready, key=lambda group: group[0].came))
                if not self.open:
                    return []
                self._changed.wait(min((left for left, _ in waiting), default=None))

    def close(self) -> list[Job]:
        """Take no more jobs and let workers go; gives those that wait: no worker takes them."""
        with self._changed:
            self.open = False
            left = [job for group in self._groups.values() for job in group]
            self._groups.clear()
            self._count = 0
            self._changed.notify_all()
            return left

    def _rows(self, group: deque[Job]) -> int:
        return sum(job.rows for job in group)

    def _left(self, group: deque[Job]) -> float:
        """Seconds that a group may still grow."""
        if self._rows(group) >= self._most:
            return 0
        return max(0.0, group[0].came + self._delay - time.monotonic())

    def _cut(self, group: deque[Job]) -> list[Job]:
        """The jobs at the head of a group that fit into a batch."""
        batch, rows = list[Job](), 0
        for job in group:
            rows += job.rows
            if batch and rows > self._most:
                break
            batch.append(job)
        self._leave(batch[0].items, batch)
        if self._groups:
            self._changed.notify()
        return batch

    def _leave(self, items: Shapes, jobs: list[Job]) -> None:
        group = self._groups[items]
        for job in jobs:
            group.remove(job)
        self._count -= len(jobs)
        if not group:
            del self._groups[items]
