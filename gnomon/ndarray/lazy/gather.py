"""gather: small arrays moved into one block of memory, so that the engine orders them as one.

What the engine does for a native program grows with the variables that it reads and writes. The
parameters of a network are read together and written together, so one variable says as much.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from gnomon import engine
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.chunk import Pooled, allocate
from gnomon.runtime.ffi import ffi, pointer

LARGEST = 1 << 16  # bytes: work on larger arrays takes longer than their entry
_ALONE = 2  # references to a chunk that one array holds, while they are counted
_GRAIN = 64


def gather(arrays: Iterable[Any]) -> None:
    """Move those that are small, and whose memory no other array knows, into one block."""
    small = [x for x in dict.fromkeys(arrays) if _is_movable(x)]
    for x in small:
        engine.get().wait_for_var(x._chunk, write=True)
    small = [x for x in small if sys.getrefcount(x._chunk) == _ALONE]
    if len(small) < 2:
        return
    sizes = [-(-x._layout.nbytes // _GRAIN) * _GRAIN for x in small]
    block = allocate(sum(sizes), small[0].context)
    offset = 0
    for x, size in zip(small, sizes, strict=True):
        ffi.memmove(pointer(block.address + offset), pointer(x._address), x._layout.nbytes)
        x._materialize(block, offset)
        offset += size


def _is_movable(array: Any) -> bool:
    """Whether an array is small, dense, and has memory of its own that nothing failed in."""
    if array.__class__ is not Array.main or array._pending_in is not None:
        return False
    layout, chunk = array._layout, array._chunk
    whole = type(chunk) is Pooled and array._offset == 0
    fits = layout.strides is None and 0 < layout.nbytes <= min(LARGEST, chunk.nbytes)
    return whole and fits and chunk.nbytes == layout.nbytes and chunk.failure is None
