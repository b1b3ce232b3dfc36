"""Chunk: memory on a device, which is the engine variable that orders its use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.engine.var import NO_JOBS, begun
from gnomon.native.serve import methods, served
from gnomon.native.words import Boxed, native, new, popped, whole
from gnomon.ndarray.core.layout import Layout
from gnomon.record import put
from gnomon.runtime.devices import pool

GPU = Context.devstr2type["gpu"]


@whole
class Chunk(Var):
    """Memory that one or several arrays look at; it goes when the last of them does.

    `owner` owns it. `shared` says that code outside gnomon may read or write it at
    any time. `pending_readers` are the pending computations that read it.
    """

    __slots__ = ("address", "ctx", "give", "nbytes", "owner", "shared")

    address: int
    ctx: Context
    give: Callable[[int], None]  # takes the memory back, where it is the pool's
    nbytes: int
    owner: Any
    pending_readers: list[Callable[[], object]]
    shared: bool

    def __new__(
        cls, address: int, ctx: Context, owner: Any, nbytes: int, shared: bool = False
    ) -> Self:
        self = object.__new__(cls)
        self._hold(address, ctx, owner, nbytes, shared)
        return self

    def _hold(self, address: int, ctx: Context, owner: Any, nbytes: int, shared: bool) -> None:
        """Set all slots: by native code from now on, where there may be such."""
        (Chunk._hold,) = methods((Chunk, held))  # type: ignore[method-assign]
        self._hold(address, ctx, owner, nbytes, shared)


@native
def held(
    chunk: Chunk, address: Boxed, ctx: Context, owner: object, nbytes: Boxed, shared: bool
) -> None:
    """Set all slots of a chunk, but `give`."""
    begun(chunk, None)
    put(chunk, "pending_readers", [])
    put(chunk, "address", address)
    put(chunk, "ctx", ctx)
    put(chunk, "owner", owner)
    put(chunk, "nbytes", nbytes)
    put(chunk, "shared", shared)


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
    put(shelf, "taken", shelf.taken + 1)
    return pooled(address, shelf.give, nbytes, ctx)


@native
def pooled(address: Boxed, give: Callable[[int], None], nbytes: Boxed, ctx: Context) -> Pooled:
    """A chunk on a block that `give` takes back."""
    made = new(Pooled)
    put(made, "give", give)
    put(made, "address", address)
    put(made, "nbytes", nbytes)
    put(made, "ctx", ctx)
    put(made, "owner", None)
    put(made, "shared", False)
    put(made, "readers", NO_JOBS)
    put(made, "writer", None)
    put(made, "queue", None)
    put(made, "failure", None)
    put(made, "name", None)
    put(made, "version", 0)
    put(made, "deleted", False)
    put(made, "pending_readers", [])
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
    put(made, "give", give)
    return made


_cpu = pool.pool_of("cpu")
#: where small blocks of the processor's memory lie idle, by their bytes plus 63, divided by 64
SHELVES: tuple[pool.Shelf, ...] = _cpu.shelves
_ways: list[Any] = []  # what `_natively` gave


def _natively() -> list[Any]:
    """How chunks are made from now on: natively, where that may be, as they are given back then."""
    (Pooled.__del__,) = methods((Pooled, forget))  # type: ignore[attr-defined]
    _ways[:] = served(taken, pooled)
    return _ways
