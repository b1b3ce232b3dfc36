"""Storage: blocks of a device's memory that return to a pool when nothing holds them.

States of a block: *in use* while its `Storage` lives; *returned* when that was freed or collected,
a row in a queue that needs no lock, because the collector may run anywhere, even while this
thread is in the pool; *idle* in the bin of its size when the next `allocate` has emptied the queue;
*released* to the device by `release_all`, when a new block would not fit, or when more than
`pool_limit` bytes are idle. Sizes are rounded up to eight classes for each doubling, so that a
block serves many requests and wastes an eighth at most. A request takes an idle block of its
class, or else of the next two classes, or else a new one. What all storage in use may hold
together is `memory_limit`; beyond it, or when the device has no more, the error says which sizes
are held. The lock is held around a fork.

Blocks of up to `SMALL` bytes, of which programs make millions, lie idle on a *shelf* for each of
their sizes: a list that gives and takes without the lock. They count as in use for the peak.

Measured (`python benchmarks/runtime.py pool`): to allocate and to free takes 1.4 us when a block is
idle; a new small block 2 us.
"""

from __future__ import annotations

import functools
import math
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from gnomon import config, context
from gnomon import dtype as dtypes
from gnomon.base import DeviceError, ParamError, ShapeError, complaint
from gnomon.context import Context
from gnomon.lock import around_forks, first_use, give_back, reentrant, renew
from gnomon.native.words import whole
from gnomon.record import Frozen, put
from gnomon.runtime.devices.device import Device, find

SMALL = 1024  # bytes: up to here sizes are multiples of 64, and a shelf holds the idle blocks


class Stats(NamedTuple):
    """Bytes of a pool's blocks in use and idle, the most ever in use, and how requests were met."""

    used: int
    idle: int
    peak: int
    allocations: int
    reused: int


class Storage:
    """A block of memory: `address`, `nbytes` and the name of its `device`; made by `allocate`.

    It returns to its pool when it is collected, or at once by `free`.
    """

    __slots__ = ("__weakref__", "_pool", "address", "capacity", "nbytes")

    def __init__(self, pool: Pool, address: int, nbytes: int, capacity: int) -> None:
        self._pool = pool
        self.address = address
        self.nbytes = nbytes
        self.capacity = capacity

    @property
    def device(self) -> str:
        """The name of the device the memory is on."""
        return self._pool.device.name

    def free(self) -> None:
        """Returns the memory now: its address must not be used any more. Twice is fine."""
        address, self.address = self.address, 0
        if address:
            self._pool.put(address, self.capacity)

    def __del__(self) -> None:
        if self.address:
            self._pool.put(self.address, self.capacity)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The whole block as bytes, for NumPy, which then keeps this object alive."""
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False),
                "version": 3}  # fmt: skip

    def view(self, dtype: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """A NumPy array on the start of the block, which keeps the storage alive.

        >>> allocate(24).view("float32", (2, 3)).shape
        (2, 3)

        Raises:
            ShapeError: the array would be larger than the block.
            DeviceError: the device's memory cannot be read from here.
        """
        if not self._pool.device.host:
            raise DeviceError(f"Storage.view: memory of device {self.device!r} cannot be read")
        numpy = dtypes.of(dtype).numpy
        size = math.prod(shape) * numpy.itemsize
        if size > self.nbytes:
            expected = f"an array of at most {self.nbytes} bytes"
            got = f"{numpy.name} of shape {shape}, {size} bytes"
            raise ShapeError(complaint("Storage.view", "shape", expected, got))
        if not size:
            return np.empty(shape, numpy)
        return np.asarray(self)[:size].view(numpy).reshape(shape)


@whole
class Shelf(Frozen):
    """The idle blocks of one small size: `idle.pop()` gives one, `idle.append` takes one back."""

    __slots__ = ("give", "idle", "made", "pool", "size", "taken")

    give: Final[Callable[[int], None]]  # type: ignore[misc]  # by `put`
    idle: Final[list[int]]  # type: ignore[misc]
    made: int  # blocks in all
    pool: Pool
    size: int
    taken: int  # requests; threads that ask at once may lose one

    def __init__(self, pool: Pool, size: int) -> None:
        put(self, "pool", pool)
        put(self, "size", size)
        put(self, "idle", [])
        put(self, "give", self.idle.append)
        put(self, "made", 0)
        put(self, "taken", 0)

    def take(self) -> int:
        """A block's address; the last holder appends that to `idle`."""
        put(self, "taken", self.taken + 1)
        try:
            return self.idle.pop()
        except IndexError:
            return self.pool.make_small(self)


class Pool:
    """The storage of one device; `allocate` and the other functions of this module use one each."""

    _small_to = SMALL  # for `put`: at the end of the process the module's own names are gone
    _trim_from = 1 << 20  # smaller blocks do not look at `pool_limit` when they return

    def __init__(self, device: Device) -> None:
        self.device = device
        self.lock = reentrant()
        shelves = [Shelf(self, size) for size in range(64, SMALL + 1, 64)]
        self.shelves = (shelves[0], *shelves)  # by a request's bytes plus 63, divided by 64
        self._keep: int = config.get("pool_limit")
        self._returned: deque[tuple[int, int]] = deque()
        self._bins: defaultdict[int, list[int]] = defaultdict(list)
        self._held: defaultdict[int, int] = defaultdict(int)
        self._takers: dict[int, Callable[[int], None]] = {}
        self._used = self._idle = self._peak = self._allocations = self._reused = self._small = 0

    def allocate(self, nbytes: int) -> Storage:
        """A block of at least `nbytes` bytes with any contents."""
        if nbytes < 0:
            raise ParamError(complaint("allocate", "nbytes", "a size of at least 0", nbytes))
        if nbytes <= SMALL:
            shelf = self.shelves[nbytes + 63 >> 6]
            return Storage(self, shelf.take(), nbytes, shelf.size)
        address, size, _ = self._take(nbytes)
        return Storage(self, address, nbytes, size)

    def take(self, nbytes: int) -> tuple[int, Callable[[int], None]]:
        """The address of a block, and who takes that back; as `allocate`, for owners of their own.

        `nbytes` is not negative. What takes it back never waits and asks nothing.
        """
        if nbytes <= SMALL:
            shelf = self.shelves[nbytes + 63 >> 6]
            return shelf.take(), shelf.give
        address, size, _ = self._take(nbytes)
        return address, self._taker(size)

    def take_cleared(self, nbytes: int) -> tuple[int, Callable[[int], None]]:
        """As `take`, with every byte zero; memory that the device has just given may be so."""
        if nbytes <= SMALL:
            shelf = self.shelves[nbytes + 63 >> 6]
            address, taker, is_new = shelf.take(), shelf.give, False
        else:
            address, size, is_new = self._take(nbytes)
            taker = self._taker(size)
        self.device.clear(address, nbytes, is_new)
        return address, taker

    def _taker(self, size: int) -> Callable[[int], None]:
        """Who takes a block of a size back that is not small."""
        taker = self._takers.get(size)
        if taker is None:
            taker = self._takers[size] = partial(self.put, size=size)
        return taker

    def _enter(self) -> None:
        """Take the lock, to be given back by `finally`: to leave `with` takes memory.

        Raises:
            DeviceError: this thread has it: a finaliser or signal handler runs amidst a request.
        """
        if self.lock._is_owned():
            raise DeviceError(
                "a finaliser or signal handler asks for memory amidst a request for it"
            )
        self.lock.acquire()

    def _take(self, nbytes: int) -> tuple[int, int, bool]:
        """Address and size of a block that is not small, and whether it is new."""
        size = size_class(nbytes)
        self._enter()
        try:
            returned = self._returned
            self._allocations += 1
            if len(returned) == 1 and returned[0][1] == size:  # as in a loop: nothing changes
                self._reused += 1
                return *returned.popleft(), False
            self._collect()
            found = self._find_idle(size)
            address, size = found or self._make(size)
            self._held[size] += 1
            self._used += size
            self._peak = max(self._peak, self._used + self._small)
        finally:
            self.lock.release()
        return address, size, found is None

    def make_small(self, shelf: Shelf) -> int:
        """A new block for a shelf that has none idle."""
        self._enter()
        try:
            self._collect()
            address, _ = self._make(shelf.size)
            put(shelf, "made", shelf.made + 1)
            self._small += shelf.size
            self._peak = max(self._peak, self._used + self._small)
        finally:
            self.lock.release()
        return address

    def put(self, address: int, size: int) -> None:
        """Takes a block back; never waits and asks nothing, since the collector calls it anywhere,
        at the end of the process too. Where memory lacks to note it, the device gets it back."""
        try:
            if size <= self._small_to:
                self.shelves[size >> 6].idle.append(address)
                return
            self._returned.append((address, size))
        except MemoryError:
            self._give_up(address, size)
            return
        try:
            if size >= self._trim_from and not self.lock._is_owned():
                self._trim()
        except MemoryError:
            return  # the next request does it

    def _trim(self) -> None:
        """Keeps no more than `pool_limit` bytes idle, if no other thread is in the pool."""
        if self.lock.acquire(blocking=False):
            try:
                self._collect()
                if self._idle > self._keep:
                    self._release_idle()
            finally:
                self.lock.release()

    def _give_up(self, address: int, size: int) -> None:
        """Releases a block that was in use; counts may be wrong by it from then on."""
        self.device.release(address, size)
        try:  # `suppress` would take memory
            if size <= self._small_to:
                shelf = self.shelves[size >> 6]
                put(shelf, "made", shelf.made - 1)
                self._small -= size
            else:
                self._held[size] -= 1
                self._used -= size
        except MemoryError:
            return

    def stats(self) -> Stats:
        """The state of the pool now."""
        self._enter()
        try:
            self._collect()
            idle = sum(len(shelf.idle) * shelf.size for shelf in self.shelves[1:])
            taken = sum(shelf.taken for shelf in self.shelves[1:])
            made = sum(shelf.made for shelf in self.shelves[1:])
            return Stats(
                self._used + self._small - idle,
                self._idle + idle,
                self._peak,
                self._allocations + taken,
                self._reused + max(0, taken - made),
            )
        finally:
            self.lock.release()

    @property
    def roughly(self) -> int:
        """As `large`, with what was given back since anybody looked."""
        return self._used

    def large(self) -> int:
        """Bytes in use, but for those of small blocks: less work than `stats`."""
        self._enter()
        try:
            self._collect()
            return self._used
        finally:
            self.lock.release()

    def release_all(self) -> int:
        """Gives all idle blocks back to the device; the number of bytes that were."""
        self._enter()
        try:
            self._collect()
            return self._release_idle()
        finally:
            self.lock.release()

    def _collect(self) -> None:
        """Puts what was returned into the bins; the caller holds the lock.

        Where memory lacks, a block stays among those returned. `+=` and `del` let no signal's
        handler in between, as calls would, so that no block is in both places, or in none.
        """
        returned = self._returned
        while returned:
            address, size = returned[0]
            idle = self._bins[size]
            idle += (address,)
            del returned[0]
            self._held[size] -= 1
            self._used -= size
            self._idle += size

    def _find_idle(self, size: int) -> tuple[int, int] | None:
        for _ in range(3):
            if bin := self._bins[size]:
                self._idle -= size
                self._reused += 1
                return bin.pop(), size
            size = size_class(size + 1)
        return None

    def _make(self, size: int) -> tuple[int, int]:
        """A new block; the caller holds the lock."""
        self._keep = config.get("pool_limit")
        limit = config.get("memory_limit") or sys.maxsize
        if self._used + self._small + size > limit:
            self._release_idle()
        if self._used + self._small + size > limit:
            raise DeviceError(self._complain(size, f"memory_limit is {_human(limit)}"))
        if self._used + self._small + self._idle + size > limit:
            self._release_idle()
        try:
            address = self.device.allocate(size)
        except MemoryError:
            self._release_idle()
            address = self._last_try(size)
        if config.get("debug") >= 1:
            print(f"{self.device.name}: new block of {_human(size)}", file=sys.stderr)
        return address, size

    def _last_try(self, size: int) -> int:
        try:
            return self.device.allocate(size)
        except MemoryError:
            raise DeviceError(self._complain(size, "the device has no more")) from None

    def _release_idle(self) -> int:
        for size, addresses in self._bins.items():
            while addresses:
                self.device.release(addresses.pop(), size)
        released, self._idle = self._idle, 0
        return released + sum(map(self._release_shelf, self.shelves[1:]))

    def _release_shelf(self, shelf: Shelf) -> int:
        """Gives back what lies idle on a shelf; the number of bytes that were."""
        count = 0
        try:
            while True:
                self.device.release(shelf.idle.pop(), shelf.size)
                count += 1
        except IndexError:
            put(shelf, "made", shelf.made - count)
            # each was made for a request: what is left are the others'
            put(shelf, "taken", shelf.taken - count)
            self._allocations += count
            self._small -= count * shelf.size
            return count * shelf.size

    def _complain(self, size: int, why: str) -> str:
        counts = {shelf.size: shelf.made - len(shelf.idle) for shelf in self.shelves[1:]}
        counts.update(self._held)
        top = sorted(((n * s, s, n) for s, n in counts.items() if n > 0), reverse=True)[:5]
        held = ", ".join(f"{n} of {_human(s)}" for _, s, n in top) or "nothing"
        return (
            f"{self.device.name}: cannot allocate {_human(size)}: {why}; "
            f"{_human(self._used + self._small)} are in use, the most of it by blocks: {held}"
        )


@functools.lru_cache(maxsize=4096)
def size_class(nbytes: int) -> int:
    """The size of the block that a request of `nbytes` gets: eight classes for each doubling.

    >>> [size_class(n) for n in (0, 64, 65, 1000, 1025)]
    [64, 64, 128, 1024, 1152]
    """
    if nbytes <= 64:
        return 64
    step = 1 << max(6, (nbytes - 1).bit_length() - 4)
    return -(-nbytes // step) * step


def _human(nbytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.4g} GiB"


_pools: dict[str | Context, Pool] = {}  # a device's name, and whatever else it was called


def pool_of(device: str | Context = "cpu") -> Pool:
    """The pool of a device; DeviceError for a device that gnomon does not have."""
    return _pools.get(device) or _find_pool(device)


def _find_pool(device: str | Context) -> Pool:
    found = find(device)
    with first_use:
        pool = _pools.get(found.name) or Pool(found)
        _pools[found.name] = pool
        if device != "gpu":  # which is what the thread has chosen
            _pools[device] = pool
        return pool


def allocate(nbytes: int, device: str | Context = "cpu") -> Storage:
    """A block of at least `nbytes` bytes, aligned to 64, with any contents.

    >>> s = allocate(100)
    >>> s.nbytes, s.device, s.address % 64
    (100, 'cpu', 0)

    Raises:
        DeviceError: there is no such device, or it has no more memory; the message says which
            sizes are held.
        ParamError: `nbytes` is negative.
    """
    return (_pools.get(device) or _find_pool(device)).allocate(nbytes)


def stats(device: str | Context = "cpu") -> Stats:
    """Bytes in use and idle, the peak, and how many requests were met from idle blocks."""
    return pool_of(device).stats()


def release_all(device: str | Context = "cpu") -> int:
    """Gives the idle blocks of a device back to the system; the number of bytes they had."""
    return pool_of(device).release_all()


context.release = release_all


def _before_fork() -> None:
    for pool in set(_pools.values()):
        pool.lock.acquire()


def _after_fork() -> None:
    for pool in set(_pools.values()):
        give_back(pool.lock)


def _in_child() -> None:
    for pool in set(_pools.values()):
        renew(pool.lock)


around_forks(_before_fork, _after_fork, _in_child)
