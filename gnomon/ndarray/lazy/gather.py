"""gather: small arrays moved into one block of memory, so that the engine orders them as one.

What the engine does for a native program grows with the variables that it reads and writes. The
parameters of a network are read together and written together, so one variable says as much.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from gnomon import engine
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.chunk import Chunk, Pooled, allocate
from gnomon.ndarray.lazy.states import State, hiding, put_away
from gnomon.runtime.ffi import ffi, pointer

LARGEST = 1 << 16  # bytes: work on larger arrays takes longer than their entry
_GRAIN = 64


def gather(arrays: Iterable[Any]) -> None:
    """Move those that are small, and whose memory no other code knows, into one block.

    From before it is looked for that until they are moved, code that asks for their memory waits.
    """
    small = [x for x in dict.fromkeys(arrays) if _is_movable(x)]
    for x in small:
        engine.get().wait_for_var(x._chunk, write=True)
    if len(small) < 2:
        return
    sizes = [-(-x._layout.nbytes // _GRAIN) * _GRAIN for x in small]
    block = allocate(sum(sizes), small[0].context)
    offsets = accumulate(sizes, initial=0)
    places = [(x, State(x._chunk, x._offset), k) for x, k in zip(small, offsets, strict=False)]
    with hiding():
        try:
            hidden = [place for place in places if put_away(*place[:2])]
            if len(hidden) > 1:
                _move(hidden, block)
        finally:  # what was not moved
            for x, state, _ in places:
                state.materialize(x)


def _move(hidden: Iterable[tuple[Any, State, int]], block: Chunk) -> None:
    """Give hidden arrays their memory in a block, with the elements that they have."""
    for x, state, offset in hidden:
        here = state.chunk.address + state.offset
        ffi.memmove(pointer(block.address + offset), pointer(here), x._layout.nbytes)
        if x._pending_in is state:  # no handler of a signal asked for it
            x._materialize(block, offset)


def _is_movable(array: Any) -> bool:
    """Whether an array is small, dense, and has memory of its own that nothing failed in."""
    if array.__class__ is not Array.main or array._pending_in is not None:
        return False
    layout, chunk = array._layout, array._chunk
    whole = type(chunk) is Pooled and array._offset == 0
    fits = layout.strides is None and 0 < layout.nbytes <= min(LARGEST, chunk.nbytes)
    return whole and fits and chunk.nbytes == layout.nbytes and chunk.failure is None
