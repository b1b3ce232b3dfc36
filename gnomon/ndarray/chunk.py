"""Chunk: memory on a device, which is the engine variable that orders its use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.engine.var import NOBODY
from gnomon.ndarray.chunk_code import CHUNK
from gnomon.runtime import jit, pool
from gnomon.runtime.fields import offset, readable
from gnomon.runtime.launch import Method, bound, for_good, method_of, native_code
from gnomon.runtime.native import Block
from gnomon.runtime.once import once

GPU = Context.devstr2type["gpu"]

_new = object.__new__


class Chunk(Var):
    """Memory that one or several arrays look at; it goes when the last of them does.

    `owner` is whoever owns it. `shared` says that somebody beside gnomon may read or write it at
    any time. `promised` are the pending computations that read it.
    """

    __slots__ = ("address", "ctx", "give", "nbytes", "owner", "shared")

    give: Callable[[int], None]  # takes the memory back, where it is the pool's

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
    """Memory of the pool's, which goes back there by `give`.

    The finaliser is a native one as soon as such code is made.
    """

    __slots__ = ()

    def __del__(self) -> None:
        self.give(self.address)


def allocate(nbytes: int, ctx: Context) -> Pooled:
    """New memory with any contents.

    Raises:
        DeviceError: there is no such device, or it has no more memory.
    """
    if nbytes <= pool.SMALL and ctx.device_typeid != GPU:
        quick = _quick() if _made[0] is None else _made[0]
        found: Pooled | None = quick(_cpu.shelves[nbytes + 63 >> 6], nbytes, ctx)
        if found is not None:
            return found
    # the processor by its name: hashing a context takes longer than allocating
    own = _cpu if ctx.device_typeid != GPU else pool.pool_of(ctx)
    address, give = own.take(nbytes)
    made = _new(Pooled)
    # as Chunk does, written out
    made.give = give
    made.address = address
    made.readers = NOBODY
    made.writer = made.queue = made.failure = made.name = made.owner = None
    made.version = 0
    made.deleted = made.shared = False
    made.promised = []
    made.ctx = ctx
    made.nbytes = nbytes
    return made


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

_SLOTS: dict[type, tuple[str, ...]] = {
    Var: ("deleted", "failure", "name", "promised", "queue", "readers", "version", "writer"),
    Chunk: ("address", "ctx", "give", "nbytes", "owner", "shared"),
    pool.Shelf: ("give", "idle", "taken"),
}
_ZERO = 0
_made: list[Any] = [None]  # what `_quick` gave


@once
def record() -> Block:
    """What native code needs to make a chunk."""
    return for_good(Block([id(Pooled), id(NOBODY), id(_ZERO)]))


def cpu_shelves() -> list[pool.Shelf]:
    """Where small blocks of the processor's memory lie idle, as the pool numbers them."""
    return _cpu.shelves


def offsets() -> dict[str, int]:
    """Where chunks and shelves hold what native code reads and writes."""
    return {
        f"{kind.__name__}.{slot}": offset(kind, slot)
        for kind, slots in _SLOTS.items()
        for slot in slots
    }


@once
def _methods() -> tuple[jit.Module, Method, Method]:
    code = native_code(CHUNK, offsets(), {})
    made, forgotten = code.address("chunk"), code.address("forget")
    return for_good((code, Method("chunk", made), Method("__del__", forgotten, none=True)))


def _quick() -> Callable[[pool.Shelf, int, Context], Pooled | None]:
    """The native way to a small chunk."""
    if readable():
        _, make, forget = _methods()
        Pooled.__del__ = method_of(Pooled, forget)  # type: ignore[method-assign]
        _made[0] = bound(make, record().address)
    else:
        _made[0] = lambda shelf, nbytes, ctx: None
    made: Callable[[pool.Shelf, int, Context], Pooled | None] = _made[0]
    return made
