"""Chunk: memory on a device, which is the engine variable that orders its use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.engine.var import NOBODY
from gnomon.native.serve import methods, served
from gnomon.native.words import Boxed, native, new, popped, whole
from gnomon.ndarray.layout import Layout
from gnomon.runtime import pool

GPU = Context.devstr2type["gpu"]


@whole
class Chunk(Var):
    """Memory that one or several arrays look at; it goes when the last of them does.

    `owner` is whoever owns it. `shared` says that somebody beside gnomon may read or write it at
    any time. `promised` are the pending computations that read it.
    """

    __slots__ = ("address", "ctx", "give", "nbytes", "owner", "shared")

    address: int
    ctx: Context
    give: Callable[[int], None]  # takes the memory back, where it is the pool's
    nbytes: int
    owner: Any
    promised: list[Callable[[], object]]
    shared: bool

    def __init__(
        self, address: int, ctx: Context, owner: Any, nbytes: int, shared: bool = False
    ) -> None:
        # as Var does, written out: one is made for every result
        self.readers = NOBODY
        self.writer = self.queue = self.failure = self.name = None
        self.version = 0
        self.deleted = False
        self.promised = []
        self.address = address
        self.ctx = ctx
        self.owner = owner
        self.nbytes = nbytes
        self.shared = shared


class Pooled(Chunk):
    """Memory of the pool's, which goes back there by `give`."""

    __slots__ = ()


@native
def forget(chunk: Pooled) -> None:
    """Give memory back; there is none where an interrupt came while the chunk was made."""
    if hasattr(chunk, "give") and hasattr(chunk, "address"):
        chunk.give(chunk.address)


Pooled.__del__ = forget  # type: ignore[attr-defined]  # a native one as soon as there is any


@native
def taken(shelf: pool.Shelf, nbytes: Boxed, ctx: Context) -> Pooled | None:
    """A chunk on an idle block of a shelf; None where no block is idle."""
    address = popped(shelf.idle)
    if address is None:
        return None
    shelf.taken += 1
    return pooled(address, shelf.give, nbytes, ctx)


@native
def pooled(address: Boxed, give: Callable[[int], None], nbytes: Boxed, ctx: Context) -> Pooled:
    """A chunk on a block that `give` takes back."""
    made = new(Pooled)
    made.give = give
    made.address = address
    made.nbytes = nbytes
    made.ctx = ctx
    made.readers = NOBODY
    made.writer = made.queue = made.failure = made.name = made.owner = None
    made.version = 0
    made.deleted = made.shared = False
    made.promised = []
    return made


def allocate(nbytes: int, ctx: Context) -> Pooled:
    """New memory with any contents.

    Raises:
        DeviceError: there is no such device, or it has no more memory.
    """
    take, make = _ways or _natively()
    if nbytes <= pool.SMALL and ctx.device_typeid != GPU:
        found: Pooled | None = take(SHELVES[nbytes + 63 >> 6], nbytes, ctx)
        if found is not None:
            return found
    # the processor by its name: hashing a context takes longer than allocating
    own = _cpu if ctx.device_typeid != GPU else pool.pool_of(ctx)
    address, give = own.take(nbytes)
    made: Pooled = make(address, give, nbytes, ctx)
    return made


@native
def memory(ctx: Context, layout: Layout) -> Pooled:
    """New memory for elements of a layout: off a shelf, or as `allocate` finds it."""
    nbytes: int = layout.nbytes
    if nbytes <= pool.SMALL and ctx.device_typeid != GPU:
        made = taken(SHELVES[nbytes + 63 >> 6], layout.nbytes, ctx)
        if made is not None:
            return made
    return allocate(nbytes, ctx)


def cleared(nbytes: int, ctx: Context) -> Pooled:
    """New memory of zeros; large memory that is fresh from the system is not touched for it.

    Raises:
        DeviceError: as `allocate`.
    """
    own = _cpu if ctx.device_typeid != GPU else pool.pool_of(ctx)
    address, give = own.take_cleared(nbytes)
    made = Pooled(address, ctx, None, nbytes)
    made.give = give
    return made


_cpu = pool.pool_of("cpu")
#: where small blocks of the processor's memory lie idle, by their bytes plus 63, divided by 64
SHELVES: tuple[pool.Shelf, ...] = _cpu.shelves
_ways: list[Any] = []  # what `_natively` gave


def _natively() -> list[Any]:
    """How chunks are made from now on: natively, where that may be, as they are given back then."""
    (Pooled.__del__,) = methods(Pooled, forget)  # type: ignore[attr-defined]
    _ways[:] = served(taken, pooled)
    return _ways
