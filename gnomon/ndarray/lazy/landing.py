"""A fast path that lands its results in arrays, by one native call.

It looks whether all variables are free; if so it puts the integers into the kernel's argument
block, runs it, counts a version of each variable that was written, and gives each array its memory.
Python's own lock is held all the while: no other thread, and no signal's handler, sees anything of
it half done, and none of the engine's locks is needed. What arrays let go of is dropped last, since
that may run other code.
"""

from __future__ import annotations

from gnomon.engine.fast_path import fire
from gnomon.engine.var import is_free, is_unread
from gnomon.ground.record import put
from gnomon.native.words import MOST, Parts, Words, native, scratch, wrapped
from gnomon.ndarray.core.array import Array, materialize_in
from gnomon.ndarray.core.chunk import Chunk


@native
def _are_free(read: list[Chunk], written: list[Chunk]) -> bool:
    """Whether no job is in the way of a kernel, and no failure."""
    if not all(is_free(chunk) for chunk in read):
        return False
    return all(is_free(chunk) and is_unread(chunk) for chunk in written)


@native
def fast_path(
    record: int, read: list[Chunk], written: list[Chunk], integers: list[int],
    holders: list[Array],
) -> bool:  # fmt: skip
    """Run a prepared fast path; whether it ran. The first of what is written goes to `holders`."""
    path = Words(record)
    count = len(integers)
    if count != path[0] or count > MOST:
        return False
    landings = len(holders)
    left = Parts(landings)
    if not _are_free(read, written):
        return False
    words = scratch(count)
    for k in range(count):
        words[k] = wrapped(integers[k])
    fire(path, words)
    for chunk in written:
        put(chunk, "version", chunk.version + 1)
    first = path[5]
    for k in range(landings):
        array = holders[k]
        left[k] = array._pending_in
        materialize_in(array, written[k], words[first + k] - written[k].address)
    return True
