"""States of an array in memory: *seen*, as any other, or *hidden*, so that it can be moved.

A hidden one is pending, its memory is known to its `State` alone, and no other array looks there.
Asking for its memory makes it a seen one; where that is while arrays are being moved, it waits.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from gnomon.context import Context
from gnomon.ground.lock import Reentrant, reentrant
from gnomon.ndarray.core.chunk import Chunk

_getrefcount = sys.getrefcount


class State:
    """What a hidden array is pending in, with the memory that it has."""

    __slots__ = ("chunk", "ctx", "offset")

    def __init__(self, chunk: Chunk, offset: int) -> None:
        self.chunk, self.offset = chunk, offset
        self.ctx: Context = chunk.ctx

    def materialize(self, array: Any) -> bool:
        """Give the array its memory."""
        with _lock[0]:
            if array._pending_in is self:
                array._materialize(self.chunk, self.offset)
        return False


def _alone() -> int:
    """The count of memory that a local name and a state alone refer to."""
    chunk: Any = object()
    held = {0: (chunk, 0)}
    return _getrefcount(chunk) + 0 * len(held)


_ALONE = _alone()


def put_away(array: Any, state: State) -> bool:
    """Have an array in memory wait in a state of that; whether it does, and no other looks there.

    Where another may, the array stays as it is.
    """
    chunk = state.chunk
    with _lock[0]:
        # no call from here to that of `_defer`: no other thread comes between
        if array._pending_in is not None or array._chunk is not chunk:
            return False
        is_alone = False
        try:
            array._defer(state, 0)  # a thread that asks for memory from here on waits
            is_alone = _getrefcount(chunk) <= _ALONE
        finally:  # an interrupt, too, leaves it in its place
            if not is_alone:
                array._materialize(chunk, state.offset)
        return is_alone


_lock = [reentrant()]  # a forked child gets another one


def hiding() -> Reentrant:
    """The lock under which arrays are hidden: what asks for the memory of one waits for it."""
    return _lock[0]


def _in_child() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    _lock[0] = reentrant()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
