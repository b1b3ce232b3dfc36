"""Memory and arrays for results, for native functions that make such."""

from __future__ import annotations

from gnomon.context import Context
from gnomon.ground.record import put
from gnomon.native.words import Words, native
from gnomon.ndarray.core.array import Array, array_on
from gnomon.ndarray.core.chunk import memory
from gnomon.ndarray.core.layout import Layout


@native
def result(ctx: Context, layout: Layout) -> Array:
    """An array in new memory, which is written by the time that anybody sees it."""
    chunk = memory(ctx, layout)
    put(chunk, "version", 1)
    return array_on(chunk, layout, 0)


@native
def results(ctx: Context, layouts: tuple[Layout, ...], addresses: Words) -> list[Array]:
    """Such arrays of these layouts; their addresses are noted."""
    made: list[Array] = []
    for k in range(len(layouts)):
        array = result(ctx, layouts[k])
        addresses[k] = array._chunk.address
        made.append(array)
    return made
