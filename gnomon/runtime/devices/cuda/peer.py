"""Copies straight from the memory of one GPU to that of another, where it can be reached.

The queue that is copied into does the work. It comes after all that the other one was given, which
in turn goes on when the copy is done: nothing waits on the processor, and the ledger of each GPU
knows the copy as its own queue's work on its own memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from gnomon.runtime.devices.cuda.driver import Driver
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue, Ranges


@functools.lru_cache(maxsize=256)
def reaches(gpu: Gpu, other: Gpu) -> bool:
    """Whether a GPU reaches the memory of another from now on; each pair is asked once."""
    with gpu.lock:
        gpu.enter()
        return gpu.driver.reach(gpu.ordinal, other.ordinal)


def copied(into: Queue, dest: int, out_of: Queue, low: int, high: int) -> bool:
    """Copy the bytes from `low` to `high` of one GPU to another; False where it does not reach
    them: nothing is done then."""
    mine, theirs, nbytes = into.gpu, out_of.gpu, high - low
    if not reaches(mine, theirs):
        return False
    read, written = [(low, high)], [(dest, dest + nbytes)]
    given = _marked(out_of, read, lambda driver: None)

    def copy(driver: Driver) -> None:
        driver.wait_event(into.handle, given)
        driver.copy_peer((dest, low), (mine.ordinal, theirs.ordinal), nbytes, into.handle)
        driver.destroy_event(given)

    done = _marked(into, (), copy, written)

    def go_on(driver: Driver) -> None:
        driver.wait_event(out_of.handle, done)
        driver.destroy_event(done)

    theirs.give(out_of, read, (), go_on)
    return True


def _marked(
    queue: Queue, reads: Ranges, work: Callable[[Driver], None], writes: Ranges = ()
) -> int:
    """An event that comes when a queue has done `work` on these bytes."""
    events = []

    def mark(driver: Driver) -> None:
        work(driver)
        events.append(driver.create_event())
        driver.record(events[0], queue.handle)

    queue.gpu.give(queue, reads, writes, mark)
    return events[0]
