"""Memory and arrays for results, for native functions that make such."""

from __future__ import annotations

from gnomon.context import Context
from gnomon.native.words import Words, native, new
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.chunk import memory
from gnomon.ndarray.core.layout import Layout
from gnomon.record import put


@native
def result(ctx: Context, layout: Layout) -> Array:
    """An array in new memory, which is written by the time that anybody sees it."""
    chunk = memory(ctx, layout)
    put(chunk, "version", 1)
    made = new(Array.main)
    put(made, "_chunk", chunk)
    put(made, "_offset", 0)
    put(made, "_layout", layout)
    put(made, "_tape", None)
    put(made, "_pending_in", None)
    return made


@native
def results(ctx: Context, layouts: tuple[Layout, ...], addresses: Words) -> list[Array]:
    """Such arrays of these layouts; their addresses are noted."""
    made: list[Array] = []
    for k in range(len(layouts)):
        array = result(ctx, layouts[k])
        addresses[k] = array._chunk.address
        made.append(array)
    return made
