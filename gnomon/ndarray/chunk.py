"""Chunk: memory on a device, which is the engine variable that orders its use."""

from __future__ import annotations

from typing import Any

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.engine.var import NOBODY
from gnomon.runtime import pool

GPU = Context.devstr2type["gpu"]


class Chunk(Var):
    """Memory that one or several arrays look at; it goes when the last of them does.

    `shared` says that somebody beside gnomon may read or write it at any time. `promised` are the
    pending computations that read it.
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


def allocate(nbytes: int, ctx: Context) -> Chunk:
    """New memory with any contents.

    Raises:
        DeviceError: there is no such device, or it has no more memory.
    """
    # the processor by its name: hashing a context takes longer than allocating
    storage = pool.allocate(nbytes) if ctx.device_typeid != GPU else pool.allocate(nbytes, ctx)
    return Chunk(storage.address, ctx, storage, nbytes)
