"""Storage: blocks of a device's memory that return to a pool when nothing holds them.

States of a block: *in use* while its `Storage` or chunk lives; *idle* on the shelf of its size when
that was freed or collected; *released* to the device by `release_all`, when a new block would not
fit, or when more than `pool_limit` bytes are idle. A *shelf* is a list that gives and takes without
a lock, because the collector may run anywhere, even while this thread is in the pool. Blocks that
move are not counted: in use is what was made and does not lie idle. A thread that makes or releases
blocks takes the pool's lock, which is held around a fork. While it is *asking* the device for a
block, which takes long, all else is as it should be: a handler amid that asks for memory as ever.

Sizes are rounded up to eight classes for each doubling, so that a block serves many requests and
wastes an eighth at most. A request takes an idle block of its class, or else, unless it is small,
of the next two classes, or else a new one. What all storage in use may hold together is
`memory_limit`; beyond it, or when the device has no more, the error says which sizes are held.
Blocks of up to `SMALL` bytes, of which programs make millions, count as in use for the peak.

Measured (`python benchmarks/runtime.py pool`): to allocate and to free takes 0.9 us where a block
of 1 KB is idle, 4 us for one of 5 MB.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Final, NamedTuple

import numpy as np

from gnomon import config, context
from gnomon import dtype as dtypes
from gnomon.base import DeviceError, MidwayError, ParamError, ShapeError, complaint
from gnomon.context import Context
from gnomon.ground.lock import around_forks, first_use, give_back, is_held_once, reentrant, renew
from gnomon.ground.record import Frozen, inner, put
from gnomon.native.words import Boxed, native, popped, whole
from gnomon.runtime.devices.device import Device, find

SMALL = 1024  # bytes: up to here sizes are multiples of 64
TRIMMED = 1 << 20  # smaller blocks do not look at `pool_limit` when they return


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

    __slots__ = ("__weakref__", "_shelf", "address", "nbytes")

    def __init__(self, shelf: Shelf, address: int, nbytes: int) -> None:
        self._shelf = shelf
        self.address = address
        self.nbytes = nbytes

    @property
    def capacity(self) -> int:
        """The bytes that the block has."""
        return self._shelf.size

    @property
    def device(self) -> str:
        """The name of the device the memory is on."""
        return self._shelf.pool.device.name

    def free(self) -> None:
        """Returns the memory now: its address must not be used any more. Twice is fine."""
        address, self.address = self.address, 0
        if address:
            self._shelf.give(address)

    def __del__(self) -> None:
        if getattr(self, "address", 0):  # or an interrupt came before it was there
            self._shelf.give(self.address)

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
        if not self._shelf.pool.device.host:
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


@native
def size_class(nbytes: int) -> int:
    """The size of the block that a request of `nbytes` gets: eight classes for each doubling.

    >>> [size_class(n) for n in (0, 64, 65, 1000, 1025)]
    [64, 64, 128, 1024, 1152]
    """
    if nbytes <= 64:
        return 64
    step = 1 << (max(6, (nbytes - 1).bit_length() - 4) & 63)
    return (nbytes + step - 1) & -step


@native
def put_back(shelf: Shelf, address: Boxed) -> None:
    """Take a block back; it never waits and asks nothing, since the collector calls it anywhere, at
    the end of the process too, when a module's names are gone."""
    try:
        shelf.idle.append(address)
    except MemoryError:
        shelf.give_up(address)
        return
    if not shelf.trims:
        return
    try:
        pool = shelf.pool
        idle = 0
        for one in pool.large:
            idle += len(one.idle) * one.size
        if idle > pool.keep:
            pool.trim()
    except MemoryError:
        return  # the next block does it


@whole
class Shelf(Frozen):
    """The idle blocks of one size: `idle.pop()` gives one, `give(address)` takes one back."""

    __slots__ = ("idle", "made", "pool", "size", "taken", "trims")

    idle: Final[list[int]]  # type: ignore[misc]  # by `put`
    made: int  # blocks in all
    pool: Pool
    size: int
    taken: int  # requests; threads that ask at once may lose one
    trims: bool  # whether blocks that come back look at `pool_limit`

    give = put_back

    def __init__(self, pool: Pool, size: int) -> None:
        put(self, "pool", pool)
        put(self, "size", size)
        put(self, "idle", [])
        put(self, "made", 0)
        put(self, "taken", 0)
        put(self, "trims", size >= TRIMMED)

    def give_up(self, address: int) -> None:
        """Releases a block that no memory is left to note, maybe without counting that."""
        self.pool.device.release(address, self.size)
        try:  # `suppress` would take memory
            self.count(-1)
        except MemoryError:
            return

    def count(self, blocks: int) -> None:
        """So many more blocks were made."""
        if self.size <= self.pool.small_to:
            self.pool.small_bytes += blocks * self.size
        else:
            self.pool.large_bytes += blocks * self.size
        put(self, "made", self.made + blocks)


@inner
class Pool:
    """The storage of one device; `allocate` and the other functions of this module use one each."""

    __slots__ = (
        "asking", "by_size", "device", "gone", "keep", "large", "large_bytes", "lock", "peak",
        "small", "small_bytes", "small_to",
    )  # fmt: skip

    asking: bool  # whether the thread with the lock waits for the device, if it took that once
    by_size: dict[int, Shelf]  # of blocks that are not small
    device: Device
    gone: int  # requests for blocks that were released since
    keep: int  # bytes that may lie idle
    large: list[Shelf]  # those of `by_size`
    large_bytes: int  # of blocks that are not small, idle ones too
    lock: Any
    peak: int
    small: tuple[Shelf, ...]  # by a request's bytes plus 63, divided by 64
    small_bytes: int
    small_to: int  # `SMALL`: at the end of the process the module's own names are gone

    def __init__(self, device: Device) -> None:
        self.device = device
        self.lock = reentrant()
        shelves = [Shelf(self, size) for size in range(64, SMALL + 1, 64)]
        self.small = (shelves[0], *shelves)
        self.by_size, self.large = {}, []
        self.keep, self.asking = config.get("pool_limit"), False
        self.gone = self.peak = self.large_bytes = self.small_bytes = 0
        self.small_to = SMALL

    def allocate(self, nbytes: int) -> Storage:
        """A block of at least `nbytes` bytes with any contents."""
        if nbytes < 0:
            raise ParamError(complaint("allocate", "nbytes", "a size of at least 0", nbytes))
        address, shelf, _ = self._take(nbytes)
        return Storage(shelf, address, nbytes)

    def take(self, nbytes: int) -> tuple[int, Shelf]:
        """The address of a block, and the shelf that takes it back; as `allocate`, for owners of
        their own. `nbytes` is not negative."""
        return self._take(nbytes)[:2]

    def take_cleared(self, nbytes: int) -> tuple[int, Shelf]:
        """As `take`, with every byte zero; memory that the device has just given may be so."""
        address, shelf, is_new = self._take(nbytes)
        self.device.clear(address, nbytes, is_new)
        return address, shelf

    def _take(self, nbytes: int) -> tuple[int, Shelf, bool]:
        """Address and shelf of a block, and whether it is new, and large."""
        shelf = self.small[nbytes + 63 >> 6] if nbytes <= SMALL else fitting(self, nbytes)
        if shelf is not None and (address := taken(shelf)) is not None:
            return address, shelf, False
        return self.make(shelf or self._shelf(size_class(nbytes)))

    def _shelf(self, size: int) -> Shelf:
        """The shelf of a size that is not small."""
        self._enter()
        try:
            found = self.by_size.get(size)
            if found is None:
                found = Shelf(self, size)
                self.large.append(found)
                self.by_size[size] = found
            return found
        finally:
            self.lock.release()

    def make(self, shelf: Shelf) -> tuple[int, Shelf, bool]:
        """A new block for a shelf that has none idle, as `_take` gives it."""
        self._enter()
        try:
            address = self._new(shelf.size)
            shelf.count(1)
            put(shelf, "taken", shelf.taken + 1)
            note_peak(self)
        finally:
            self.lock.release()
        return address, shelf, shelf.size > SMALL

    def _enter(self) -> None:
        """Take the lock, to be given back by `finally`: to leave `with` takes memory.

        Raises:
            MidwayError: this thread has it: a finaliser or signal handler runs amidst a request.
        """
        if self.lock._is_owned() and not (self.asking and is_held_once(self.lock)):
            raise MidwayError(
                "a finaliser or signal handler asks for memory amidst a request for it"
            )
        for _ in iter(self.lock.acquire, True):  # no room for an interrupt: `ground/lock.py`
            pass

    def trim(self) -> None:
        """Gives idle blocks back to the device, if no thread is in the pool."""
        if not self.lock._is_owned() and self.lock.acquire(blocking=False):
            try:
                self._release_idle()
            finally:
                self.lock.release()

    def stats(self) -> Stats:
        """The state of the pool now."""
        self._enter()
        try:
            shelves = (*self.small[1:], *self.large)
            idle = sum(len(shelf.idle) * shelf.size for shelf in shelves)
            requests, made = sum(s.taken for s in shelves), sum(s.made for s in shelves)
            used = self.large_bytes + self.small_bytes - idle
            asked = self.gone + requests
            return Stats(used, idle, self.peak, asked, max(0, requests - made))
        finally:
            self.lock.release()

    def release_all(self) -> int:
        """Gives all idle blocks back to the device now; the number of bytes that were."""
        self._enter()
        try:
            nbytes = self._release_idle()
        finally:
            self.lock.release()
        self.device.synchronise()  # which a GPU gives memory back with
        return nbytes

    def _new(self, size: int) -> int:
        """A new block of the device's; the caller holds the lock."""
        self.keep = config.get("pool_limit")
        limit = config.get("memory_limit") or sys.maxsize
        if self.large_bytes + self.small_bytes + size > limit:
            self._release_idle()
        if self.large_bytes + self.small_bytes + size > limit:
            raise DeviceError(self._complain(size, f"memory_limit is {_human(limit)}"))
        try:
            address = self._asked(size)
        except MemoryError:
            self._release_idle()
            address = self._last_try(size)
        if config.get("debug") >= 1:
            print(f"{self.device.name}: new block of {_human(size)}", file=sys.stderr)
        return address

    def _asked(self, size: int) -> int:
        """What the device gives; the caller holds the lock."""
        before = self.asking
        try:
            self.asking = True
            return self.device.allocate(size)
        finally:
            self.asking = before

    def _last_try(self, size: int) -> int:
        try:
            return self._asked(size)
        except MemoryError:
            raise DeviceError(self._complain(size, "the device has no more")) from None

    def _release_idle(self) -> int:
        return sum(map(self._release_shelf, (*self.small[1:], *self.large)))

    def _release_shelf(self, shelf: Shelf) -> int:
        """Gives back what lies idle on a shelf; the number of bytes that were."""
        count = 0
        try:
            while True:
                self.device.release(shelf.idle.pop(), shelf.size)
                count += 1
        except IndexError:
            shelf.count(-count)
            # each was made for a request: what is left are the others'
            put(shelf, "taken", shelf.taken - count)
            self.gone += count
            return count * shelf.size

    def _complain(self, size: int, why: str) -> str:
        shelves = (*self.small[1:], *self.large)
        counts = {shelf.size: shelf.made - len(shelf.idle) for shelf in shelves}
        top = sorted(((n * s, s, n) for s, n in counts.items() if n > 0), reverse=True)[:5]
        held = ", ".join(f"{n} of {_human(s)}" for _, s, n in top) or "nothing"
        return (
            f"{self.device.name}: cannot allocate {_human(size)}: {why}; "
            f"{_human(in_use(self) + self.small_bytes)} are in use, "
            f"the most of it by blocks: {held}"
        )


@native
def fitting(pool: Pool, nbytes: int) -> Shelf | None:
    """Where a block lies idle for a request that is not small: of its class, or the next two."""
    size = size_class(nbytes)
    for _ in range(3):
        shelf = pool.by_size.get(size)
        if shelf is not None and len(shelf.idle) > 0:
            return shelf
        size = size_class(size + 1)
    return None


@native
def taken(shelf: Shelf) -> Boxed | None:
    """The address of a block that lay idle on a shelf; None where there is none."""
    address = popped(shelf.idle)
    if address is None:
        return None
    put(shelf, "taken", shelf.taken + 1)
    if shelf.size > SMALL:
        note_peak(shelf.pool)
    return address


@native
def in_use(pool: Pool) -> int:
    """Bytes in use, but for those of small blocks."""
    used: int = pool.large_bytes
    for shelf in pool.large:
        used -= len(shelf.idle) * shelf.size
    return used


@native
def note_peak(pool: Pool) -> None:
    """Note how much is in use, if that is the most ever."""
    used = in_use(pool) + pool.small_bytes
    pool.peak = max(pool.peak, used)


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


def memory(device: str | Context) -> tuple[int, int]:
    """Bytes that are free on a GPU, and all there are, within `memory_limit`.

    Blocks that lie idle are not free, as for the driver.
    """
    gpu: Any = find(device)
    pool = pool_of(device)
    free, total = gpu.memory()
    limit = config.get("memory_limit") or total
    held = pool.large_bytes + pool.small_bytes
    return max(0, min(free, limit - held)), min(total, limit)


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
