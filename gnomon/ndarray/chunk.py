"""Chunk: memory on a device together with the engine variable that orders its use."""

from __future__ import annotations

from typing import Any

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.runtime import pool

GPU = Context.devstr2type["gpu"]


class Chunk:
    """Memory that one or several arrays look at; it goes when the last of them does."""

    __slots__ = ("__weakref__", "address", "ctx", "owner", "var")

    def __init__(self, address: int, ctx: Context, owner: Any) -> None:
        self.address = address
        self.ctx = ctx
        self.owner = owner
        self.var = Var()


def allocate(nbytes: int, ctx: Context) -> Chunk:
    """New memory with any contents.

    Raises:
        DeviceError: there is no such device, or it has no more memory.
    """
    # the processor by its name: hashing a context takes longer than allocating
    storage = pool.allocate(nbytes) if ctx.device_typeid != GPU else pool.allocate(nbytes, ctx)
    return Chunk(storage.address, ctx, storage)
