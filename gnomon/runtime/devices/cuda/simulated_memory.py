"""The memory of a simulated GPU: addresses of its own, blocks with an end, accesses with an order.

Blocks lie far apart, at addresses that this process cannot touch. What is read or written must lie
within one block that is not freed. Work of two streams that touches the same bytes must be ordered,
by events or by the processor's waiting in between: each piece of work carries a *clock*, how far
along each stream it knows to be done, and what is done to a block is remembered with it. Between
the ends of what a kernel reads or writes of a block, all counts as touched.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gnomon.base import DeviceError
from gnomon.code.races import Actors, Watch

Array: TypeAlias = "np.ndarray[Any, Any]"
BASE = 0x7000_0000_0000  # of the first GPU's addresses
SPAN = 1 << 40  # addresses of one GPU
GAP = 1 << 12  # at least, between two blocks
GARBAGE = 0xA5  # what new memory holds
WATCHED = 1 << 20  # places of a block up to which each is watched for races of threads


class Work(NamedTuple):
    """A piece of work: what it is, its stream and number there, and its clock."""

    name: str
    stream: int
    number: int
    clock: dict[int, int]

    def knows(self, other: Work) -> bool:
        """Whether `other` is done before this begins."""
        return self.clock.get(other.stream, 0) >= other.number


class Access(NamedTuple):
    """Bytes of a block that a piece of work touched."""

    low: int
    high: int
    writes: bool
    work: Work


class Block:
    """An allocation: its bytes, and what was done to them that is not known to be done."""

    def __init__(self, start: int, nbytes: int) -> None:
        self.start, self.end = start, start + nbytes
        self.accesses: list[Access] = []
        self._data: Array | None = None

    @property
    def data(self) -> Array:
        """The bytes; they are made when one is first read or written."""
        if self._data is None:
            self._data = np.full(self.end - self.start, GARBAGE, np.uint8)
        return self._data

    def touch(self, low: int, high: int, writes: bool, work: Work) -> None:
        """Notes an access; DeviceError where one before has no order with it."""
        for old in self.accesses:
            meet = old.low < high and low < old.high and (writes or old.writes)
            if meet and not work.knows(old.work) and not old.work.knows(work):
                does, did = ("writes" if w else "reads" for w in (writes, old.writes))
                raise DeviceError(
                    f"race of streams: {work.name} on stream {work.stream} {does} bytes of the "
                    f"block at {self.start:#x} that {old.work.name} on stream {old.work.stream} "
                    f"{did}, and no event orders them"
                )
        self.accesses.append(Access(low, high, writes, work))


class Space:
    """The blocks of one GPU."""

    def __init__(self, ordinal: int, total: int) -> None:
        self.total, self.used = total, 0
        self._next = BASE + ordinal * SPAN
        self.low, self.high = self._next, self._next + SPAN
        self._starts: list[int] = []
        self._blocks: dict[int, Block] = {}

    def reserve(self, nbytes: int) -> Block:
        """A new block; MemoryError."""
        if self.used + nbytes > self.total:
            raise MemoryError(nbytes)
        block = Block(self._next, nbytes)
        self._next += -(-(nbytes + GAP) // GAP) * GAP
        self.used += nbytes
        bisect.insort(self._starts, block.start)
        self._blocks[block.start] = block
        return block

    def release(self, address: int) -> None:
        """Takes a block away; DeviceError where none begins there."""
        block = self._blocks.pop(address, None)
        if block is None:
            raise DeviceError(f"cuMemFreeAsync: CUDA_ERROR_INVALID_VALUE: no block at {address:#x}")
        self._starts.remove(address)
        self.used -= block.end - block.start

    def at(self, address: int) -> Block | None:
        """The block that an address lies in or is nearest behind."""
        k = bisect.bisect(self._starts, address)
        return self._blocks[self._starts[k - 1]] if k else None

    def block(self, low: int, high: int, what: str) -> Block:
        """The block that holds bytes; DeviceError where none does."""
        found = self.at(low)
        if found is None or not found.start <= low <= high <= found.end:
            near = (
                "no block is near"
                if found is None
                else (
                    f"the block before is at {found.start:#x}, of {found.end - found.start} bytes"
                )
            )
            raise DeviceError(
                f"CUDA_ERROR_ILLEGAL_ADDRESS: {what} of {high - low} bytes at {low:#x}; {near}"
            )
        return found

    def touched(self, address: int, nbytes: int, writes: bool, work: Work) -> Block:
        """The block of bytes that a piece of work touches."""
        what = f"{work.name} {'writes' if writes else 'reads'}"
        block = self.block(address, address + nbytes, what)
        block.touch(address, address + nbytes, writes, work)
        return block

    def bytes_at(self, address: int, nbytes: int, writes: bool, work: Work) -> Array:
        """Bytes of a block, touched by a piece of work."""
        block = self.touched(address, nbytes, writes, work)
        return block.data[address - block.start : address - block.start + nbytes]

    def forget(self, known: dict[int, int]) -> None:
        """Forgets accesses that are done for all work to come."""
        for block in self._blocks.values():
            block.accesses = [
                a for a in block.accesses if known.get(a.work.stream, 0) < a.work.number
            ]

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks.values())


class LaunchMemory:
    """The memory as the threads of one launch see it: `code.lockstep.Memory`."""

    def __init__(self, space: Space, work: Work) -> None:
        self.space, self.work = space, work
        self.watches: dict[tuple[int, int], Watch | None] = {}
        self.reach: dict[tuple[int, bool], tuple[Block, int, int]] = {}

    def load(self, addresses: Array, dtype: np.dtype[Any], actors: Actors) -> Array:
        """See `Memory`."""
        block, places, watch = self._places(addresses, dtype.itemsize, False)
        if watch is not None:
            watch.read(places, actors)
        return np.asarray(self._elements(block, dtype)[places])

    def store(self, addresses: Array, values: Array, actors: Actors) -> None:
        """See `Memory`."""
        block, places, watch = self._places(addresses, values.itemsize, True)
        if watch is not None:
            watch.write(places, actors, values)
        self._elements(block, values.dtype)[places] = values

    def end(self) -> None:
        """The launch is done: its accesses are checked against those of other work."""
        for (_, writes), (block, low, high) in self.reach.items():
            block.touch(low, high, writes, self.work)

    def _elements(self, block: Block, dtype: np.dtype[Any]) -> Array:
        whole = len(block.data) // dtype.itemsize * dtype.itemsize
        return block.data[:whole].view(dtype)

    def _places(
        self, addresses: Array, size: int, writes: bool
    ) -> tuple[Block, Array, Watch | None]:
        low, high = int(addresses.min()), int(addresses.max()) + size
        what = f"{self.work.name} {'writes' if writes else 'reads'}"
        block = self.space.block(low, high, what)
        if (addresses % size).any():
            raise DeviceError(f"CUDA_ERROR_MISALIGNED_ADDRESS: {what} elements of {size} bytes")
        _, first, last = self.reach.get((block.start, writes), (block, low, high))
        self.reach[block.start, writes] = block, min(first, low), max(last, high)
        key = block.start, size
        if key not in self.watches:
            count = len(block.data) // size
            name = f"the block at {block.start:#x}"
            self.watches[key] = Watch(name, count) if count <= WATCHED else None
        return block, (addresses - block.start) // size, self.watches[key]
