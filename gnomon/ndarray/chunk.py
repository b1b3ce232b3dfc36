"""Chunk: memory on a device, which is the engine variable that orders its use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.engine.var import NOBODY
from gnomon.runtime import pool

GPU = Context.devstr2type["gpu"]

_new = object.__new__


class Chunk(Var):
    """Memory that one or several arrays look at; it goes when the last of them does.

    `owner` is whoever owns it. `shared` says that somebody beside gnomon may read or write it at
    any time. `promised` are the pending computations that read it.
    """

    __slots__ = ("address", "ctx", "nbytes", "owner", "shared")

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

    __slots__ = ("give",)

    give: Callable[[int], None]

    def __del__(self) -> None:
        self.give(self.address)


def allocate(nbytes: int, ctx: Context) -> Pooled:
    """New memory with any contents.

    Raises:
        DeviceError: there is no such device, or it has no more memory.
    """
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


_cpu = pool.pool_of("cpu")
