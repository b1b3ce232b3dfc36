"""Chunk: memory on a device, which is the engine variable that orders its use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.engine.var import begun
from gnomon.ground.record import put
from gnomon.native.serve import methods, served
from gnomon.native.words import Boxed, native, new, whole
from gnomon.ndarray.core.layout import Layout
from gnomon.runtime.devices import pool

GPU = Context.devstr2type["gpu"]


@whole
class Chunk(Var):
    """Memory that one or several arrays look at; it goes when the last of them does.

    `owner` owns it. `shared` says that code outside gnomon may read or write it at
    any time. `pending_readers` are the pending computations that read it.
    """

    __slots__ = ("address", "ctx", "nbytes", "owner", "shared", "shelf")

    address: int
    ctx: Context
    nbytes: int
    owner: Any
    pending_readers: list[Callable[[], object]]
    shared: bool
    shelf: pool.Shelf  # takes the memory back, where it is the pool's

    def __new__(
        cls, address: int, ctx: Context, owner: Any, nbytes: int, shared: bool = False
    ) -> Self:
        self = object.__new__(cls)
        self._hold(address, ctx, owner, nbytes, shared)
        return self

    def has_value(self) -> bool:
        """It was made around values."""
        return True

    def _hold(self, address: int, ctx: Context, owner: Any, nbytes: int, shared: bool) -> None:
        """Set all slots: by native code from now on, where there may be such."""
        (Chunk._hold,) = methods((Chunk, held))  # type: ignore[method-assign]
        self._hold(address, ctx, owner, nbytes, shared)


@native
def held(
    chunk: Chunk, address: Boxed, ctx: Context, owner: object, nbytes: Boxed, shared: bool
) -> None:
    """Set all slots of a chunk, but `shelf`; the address first, which `forget` asks for."""
    put(chunk, "address", address)
    begun(chunk, None)
    put(chunk, "pending_readers", [])
    put(chunk, "ctx", ctx)
    put(chunk, "owner", owner)
    put(chunk, "nbytes", nbytes)
    put(chunk, "shared", shared)


class Pooled(Chunk):
    """Memory of the pool's, which goes back to its `shelf`."""

    __slots__ = ()

    def has_value(self) -> bool:
        """Whatever lay in it is none until something was written."""
        return self.version > 0


@native
def forget(chunk: Pooled) -> None:
    """Give memory back; there is none where an interrupt came while the chunk was made."""
    if hasattr(chunk, "shelf") and hasattr(chunk, "address"):
        pool.put_back(chunk.shelf, chunk.address)


Pooled.__del__ = forget  # type: ignore[attr-defined]  # a native one as soon as there is any


@native
def idle(nbytes: Boxed, ctx: Context) -> Pooled | None:
    """A chunk on memory of the processor's that lay idle; None where none of that size does."""
    size: int = nbytes
    shelf = SHELVES[size + 63 >> 6] if size <= pool.SMALL else pool.fitting(CPU, size)
    if shelf is None:
        return None
    address = pool.taken(shelf)
    if address is None:
        return None
    return pooled(address, shelf, nbytes, ctx)


@native
def pooled(address: Boxed, shelf: pool.Shelf, nbytes: Boxed, ctx: Context) -> Pooled:
    """A chunk on a block that a shelf takes back."""
    made = new(Pooled)
    put(made, "shelf", shelf)
    held(made, address, ctx, None, nbytes, False)
    return made


def allocate(nbytes: int, ctx: Context) -> Pooled:
    """New memory with any contents.

    Raises:
        DeviceError: there is no such device, or it has no more memory.
    """
    take, make = _ways or _natively()
    if ctx.device_typeid != GPU:
        found: Pooled | None = take(nbytes, ctx)
        if found is not None:
            return found
    address, shelf = _pool(ctx).take(nbytes)
    made: Pooled = make(address, shelf, nbytes, ctx)
    return made


@native
def memory(ctx: Context, layout: Layout) -> Pooled:
    """New memory for elements of a layout."""
    if ctx.device_typeid != GPU:
        made = idle(layout.nbytes, ctx)
        if made is not None:
            return made
    return allocate(layout.nbytes, ctx)


def cleared(nbytes: int, ctx: Context) -> Pooled:
    """New memory of zeros; large memory that is fresh from the system is not touched for it.

    Raises:
        DeviceError: as `allocate`.
    """
    _, make = _ways or _natively()
    address, shelf = _pool(ctx).take_cleared(nbytes)
    made: Pooled = make(address, shelf, nbytes, ctx)
    return made


def _pool(ctx: Context) -> pool.Pool:
    """A context's pool; the processor's by its name, as to hash a context takes longer."""
    return CPU if ctx.device_typeid != GPU else pool.pool_of(ctx)


CPU = pool.pool_of("cpu")
#: where small blocks of the processor's memory lie idle, by their bytes plus 63, divided by 64
SHELVES: tuple[pool.Shelf, ...] = CPU.small
_ways: list[Any] = []  # what `_natively` gave


def _natively() -> list[Any]:
    """How chunks are made from now on: natively, where that may be, as they are given back then."""
    (Pooled.__del__,) = methods((Pooled, forget))  # type: ignore[attr-defined]
    _ways[:] = served(idle, pooled)
    return _ways
