"""Programs of GPUs: steps on fixed memory as one piece of a queue's work, a CUDA graph.

States: *made*; *begun* after the first run, which gives the steps to the queue one by one: whatever
a library loads or makes for itself when it is first asked is there then; *recorded* from the second
run on, which captures the steps on their own queue, and launches the graph by one call of the
driver. A capture, and not a graph made of nodes one by one, because that is how a library's calls
come into one. Addresses and numbers of a graph stay what they are: what changes from run to run is
copied to where the graph reads it, by the queue, before the launch. A program that is a single call
of the driver is no graph.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gnomon.runtime.devices.cuda.driver import Driver
from gnomon.runtime.devices.cuda.gpu import Queue
from gnomon.runtime.kernels.gpu_kernel import GpuStep, Issue, Launches, uploaded

Range = tuple[int, int]


class Fixed(NamedTuple):
    """What a step has the driver do, which takes no memory for that: its words, and the bytes that
    it reads and writes. `pieces` is how many it gives the driver, `keep` owns what they need."""

    issue: Issue
    words: Sequence[int]
    reads: list[Range]
    writes: list[Range]
    pieces: int
    keep: Any


class GpuProgram:
    """`steps`, all of one queue, as one; they hold the memory they use."""

    __slots__ = ("__weakref__", "_graph", "_steps", "count", "queue", "reads", "writes")

    work = 0  # of the processor's: none

    def __init__(self, steps: Iterable[GpuStep], queue: Queue) -> None:
        self._steps = [fixed(step) for step in steps]
        self.queue = queue
        self.count = sum(step.pieces for step in self._steps)
        self.reads = joined(r for step in self._steps for r in step.reads)
        self.writes = joined(w for step in self._steps for w in step.writes)
        self._graph: int | None = None  # 0: begun

    def run(self) -> None:
        """Give the work to the queue.

        Raises:
            DeviceError: the driver refuses; or work given before has failed.
        """
        if self.count:
            self.queue.gpu.give(self.queue, self.reads, self.writes, self._given)

    def _given(self, driver: Driver) -> None:
        graph, queue = self._graph, self.queue
        if graph is None or self.count < 2:
            self._issue(driver)
            self._graph = 0
            return
        if not graph:
            graph = self._graph = queue.gpu.captured(queue, self._issue)
            weakref.finalize(self, queue.gpu.drop, driver.destroy_graph, graph).atexit = False
        driver.launch_graph(graph, queue.handle)

    def _issue(self, driver: Driver) -> None:
        for step in self._steps:
            step.issue(driver, step.words, self.queue)


def fixed(step: GpuStep) -> Fixed:
    """A step whose words stay; those that are too many for an entry lie in the GPU's memory."""
    issue, words, (reads, writes) = step.issue, step.words, step.ranges()
    if not isinstance(issue, Launches):
        return Fixed(issue, words, reads, writes, 1, step)
    count = len(issue.entries)
    if issue.by_value:
        return Fixed(issue, words, reads, writes, count, step)
    memory = uploaded(words, step.queue)
    reads.append((memory.address, memory.address + memory.nbytes))
    by_value = Launches(issue.entries, True)
    return Fixed(by_value, [memory.address], reads, writes, count, (step, memory))


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Ranges of bytes, those that meet as one."""
    found: list[Any] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        elif low < high:
            found.append((low, high))
    return found
