"""A GPU as a device: its memory, its streams, and the order of what they do.

Every statement goes to a queue, a stream of the driver's. Whichever queues they are given to, work
on the same memory is done in the order in which the program gave it: a ledger knows which bytes
each queue has read and written, and a queue that comes to bytes of another one first waits for an
event of that. So results are those of a single queue, and memory that returns to the pool while
work on it is still under way can be given out again at once. A program of one queue, as most are,
keeps no ledger. `synchronise` waits for all queues.

Measured on no hardware yet; see docs/gpu.md.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from gnomon.base import DeviceError, complaint
from gnomon.ground.collector import resting
from gnomon.ground.lock import reentrant
from gnomon.runtime.devices.cuda import driver as drivers
from gnomon.runtime.devices.cuda.driver import Driver, Image, Properties

Ranges: TypeAlias = Sequence[tuple[int, int]]
MANY = 4096  # ranges in a ledger beyond which all queues are waited for, and it begins anew


class Queue:
    """A stream of the driver's on one GPU; it is destroyed with its last holder."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        with gpu.lock:
            gpu.enter()
            self.handle = gpu.driver.create_stream()
        self.given = 0  # pieces of work
        self.knows: dict[Queue, int] = {}  # of others: how much is done before what comes next
        gpu.queues.add(self)
        weakref.finalize(self, gpu.drop, gpu.driver.destroy_stream, self.handle).atexit = False

    def wait(self) -> None:
        """Returns when all work of the queue is done.

        Raises:
            DeviceError: work of the GPU failed.
        """
        with self.gpu.lock:
            driver = self.gpu.enter()
            driver.wait_stream(self.handle)

    def is_idle(self) -> bool:
        """Whether all work of the queue is done."""
        with self.gpu.lock:
            driver = self.gpu.enter()
            return driver.is_idle(self.handle)

    def after_stream(self, stream: int) -> None:
        """What comes next here waits for what a stream of another library was given."""
        with self.gpu.lock:
            self.gpu.enter()
            self._join(self.handle, stream)

    def before(self, stream: int) -> None:
        """What a stream of another library is given next waits for what was given here."""
        with self.gpu.lock:
            self.gpu.enter()
            self._join(stream, self.handle)

    def _join(self, later: int, earlier: int) -> None:
        driver = self.gpu.driver
        event = driver.create_event()
        driver.record(event, earlier)
        driver.wait_event(later, event)
        driver.destroy_event(event)

    def after(self, other: Queue) -> None:
        """What comes next here waits for all that `other` was given."""
        self._join(self.handle, other.handle)
        self.knows[other] = other.given


class Ledger:
    """Which bytes each queue has read and written: the number of its last work there."""

    def __init__(self) -> None:
        self.uses: dict[tuple[int, int], tuple[dict[Queue, int], dict[Queue, int]]] = {}

    def before(self, queue: Queue, reads: Ranges, writes: Ranges) -> set[Queue]:
        """The queues whose work on these bytes has to be done before what `queue` comes to."""
        found: set[Queue] = set()
        for (low, high), (readers, writers) in self.uses.items():
            mine = [a < high and low < b for a, b in writes]
            others = [writers] if any(a < high and low < b for a, b in reads) else []
            for uses in (*others, *([readers, writers] if any(mine) else [])):
                found |= {q for q, n in uses.items() if n > queue.knows.get(q, 0)}
        return found - {queue}

    def note(self, queue: Queue, reads: Ranges, writes: Ranges) -> None:
        """The work that `queue` was given last touches these bytes."""
        for which, ranges in enumerate((reads, writes)):
            for span in ranges:
                self.uses.setdefault(span, ({}, {}))[which][queue] = queue.given


class Gpu:
    """GPU number `ordinal`."""

    host = False
    runs = True

    def __init__(self, driver: Driver, ordinal: int) -> None:
        self.driver, self.ordinal = driver, ordinal
        self.name = f"gpu({ordinal})"
        self.properties: Properties = driver.properties(ordinal)
        self.lock = reentrant()
        self.queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._ledger = Ledger()
        self._context = driver.context(ordinal)
        self._dropped: deque[tuple[Callable[..., object], tuple[int, ...]]] = deque()
        self.default = Queue(self)

    def enter(self) -> Driver:
        """The driver, whose calls are meant for this GPU until the caller gives `lock` back."""
        self.driver.enter(self._context)
        return self.driver

    def drop(self, release: Callable[..., object], *what: int) -> None:
        """Have `release(*what)` called when the GPU is given work, or asked for memory, next.

        So finalizers do, which come amidst anything, on any thread: it takes no lock, and makes no
        other GPU the one that calls are meant for.
        """
        self._dropped.append((release, what))

    def _release_dropped(self) -> None:
        """Release what was dropped; after an error there may be none of it any more."""
        while self._dropped:
            release, what = self._dropped.popleft()
            with suppress(DeviceError):
                release(*what)

    def give(
        self, queue: Queue, reads: Ranges, writes: Ranges, work: Callable[[Driver], object]
    ) -> None:
        """Have `work` give a queue work on these bytes, after what that has to come after."""
        with self.lock:
            driver = self.enter()
            self._release_dropped()
            if len(self._ledger.uses) > MANY:
                self.synchronise()
            self._in_order(driver, queue, reads, writes, work)

    def _in_order(
        self,
        driver: Driver,
        queue: Queue,
        reads: Ranges,
        writes: Ranges,
        work: Callable[[Driver], object],
    ) -> None:
        """`give` for who has the lock."""
        several = len(self.queues) > 1
        if several:
            for other in self._ledger.before(queue, reads, writes):
                queue.after(other)
        work(driver)
        queue.given += 1
        if several:
            self._ledger.note(queue, reads, writes)

    @resting()  # what the collector would free is no part of a capture, and would end it
    def captured(self, queue: Queue, work: Callable[[Driver], object]) -> int:
        """What `work` gives a queue, recorded as a graph; the caller has the lock, and drops it
        at last.

        Raises:
            DeviceError: it cannot be recorded.
        """
        driver = self.driver
        try:
            driver.begin_capture(queue.handle)
            work(driver)
            return driver.end_capture(queue.handle)
        except BaseException:
            driver.abandon_capture(queue.handle)
            raise

    def queue(self) -> Queue:
        """A new queue; what the others were given until now is done before what it is given."""
        with self.lock:
            self.enter()
            made = Queue(self)
            for other in self._all_but(made):
                made.after(other)
        return made

    def _all_but(self, queue: Queue) -> list[Queue]:
        """The other queues; not a loop with a condition under the lock, see `ground/lock.py`."""
        return [other for other in self.queues if other is not queue]

    def load(self, image: Image) -> list[int]:
        """The entries of an image on this GPU, for good."""
        with self.lock:
            driver = self.enter()
            module = driver.load(image)
            return [driver.function(module, name) for name in image.names]

    # -- what every device does -----------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        """A new block; MemoryError."""
        with self.lock:
            driver = self.enter()
            self._release_dropped()
            address = driver.allocate(max(nbytes, 1), self.default.handle)
        self._write(address, nbytes, lambda driver, stream: None)
        return address

    def release(self, address: int, nbytes: int) -> None:
        """Gives a block back with the next work, when all work on it is done; finalizers may."""
        self.drop(self._free, address, nbytes)

    def _free(self, address: int, nbytes: int) -> None:
        """Have the default queue free a block, after all work on it."""
        queue, span = self.default, (address, address + nbytes)
        self._in_order(
            self.driver, queue, (), [span], lambda driver: driver.free(address, queue.handle)
        )

    def clear(self, address: int, nbytes: int, is_new: bool) -> None:
        """Makes bytes zero."""
        self._write(address, nbytes, lambda driver, stream: driver.fill(address, 0, nbytes, stream))

    def _write(self, address: int, nbytes: int, work: Callable[[Driver, int], object]) -> None:
        """Have `work`, on a whole block, done by the queue that all memory comes from."""
        queue, span = self.default, (address, address + nbytes)
        self.give(queue, (), [span], lambda driver: work(driver, queue.handle))

    def copy(self, dest: int, source: int, nbytes: int) -> None:
        """Copies between two blocks of this GPU."""
        self.copy_on(self.default, dest, source, nbytes)

    def copy_on(self, queue: Queue, dest: int, source: int, nbytes: int) -> None:
        """Copies between any memories, in the order of `queue`."""
        ends = [(source, source + nbytes)], [(dest, dest + nbytes)]
        self.give(queue, *ends, lambda driver: driver.copy(dest, source, nbytes, queue.handle))

    def synchronise(self) -> None:
        """Returns when all work given to the GPU is done."""
        with self.lock:
            self.enter()
            self._release_dropped()
            queues = list(self.queues)
            for queue in queues:
                queue.wait()
            self._ledger = Ledger()
            for queue in queues:
                queue.knows = {other: other.given for other in self._all_but(queue)}

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and all there are."""
        with self.lock:
            driver = self.enter()
            self._release_dropped()
            return driver.memory()


_gpus: dict[tuple[int, int], Gpu] = {}
_current = threading.local()  # of a thread: the `ordinal` of the GPU it chose


_forked: list[int] = []  # the parent, in a child of a process that used GPUs, or counted them


def _in_child() -> None:
    if drivers.is_begun():
        _forked.append(os.getppid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def count() -> int:
    """How many GPUs can be used: none in a forked child of a process that has counted them."""
    driver = None if _forked else drivers.find()
    return 0 if driver is None else driver.count()


def get(ordinal: int | None = None) -> Gpu:
    """GPU number `ordinal`, or the one that `choose` chose.

    Raises:
        DeviceError: there is none of this number.
    """
    if _forked:
        raise DeviceError(
            "gpu: a forked process cannot use the GPUs that its parent uses or counted; spawn it"
        )
    number: int = getattr(_current, "ordinal", 0) if ordinal is None else ordinal
    driver = drivers.needed(f"gpu({number})")
    found = _gpus.get((id(driver), number))
    if found is None:
        if number >= driver.count():
            expected = f"a GPU below {driver.count()}"
            raise DeviceError(complaint("gpu", "device_id", expected, number))
        found = _gpus.setdefault((id(driver), number), Gpu(driver, number))
    return found


def synchronise() -> None:
    """Returns when all GPUs that were used have done what they were given."""
    for gpu in list(_gpus.values()):
        gpu.synchronise()


def owner(address: int) -> Gpu:
    """The GPU whose memory lies there.

    Raises:
        DeviceError: it is no GPU's.
    """
    gpu = get()
    with gpu.lock:
        ordinal = gpu.enter().owner(address)
    return get(ordinal)


def choose(gpu: Any) -> None:
    """'gpu' means this one in this thread from now on."""
    _current.ordinal = gpu.ordinal
