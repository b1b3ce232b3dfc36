"""States: arrays that a noted operator is about to change, such as moving averages (`notes.py`).

A state of an array. *Seen*: it lies in memory, as any other. *Hidden*: it is pending, its memory is
known to its `State` alone, and no other array looks there. `record` is the record in which an
operator is noted that changes it, None where there is none: asking for the array's memory, which
makes it a seen one, has that computed first. A hidden array stays so from step to step.
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

    __slots__ = ("chunk", "ctx", "offset", "record")

    def __init__(self, chunk: Chunk, offset: int, record: Any) -> None:
        self.chunk, self.offset, self.record = chunk, offset, record
        self.ctx: Context = chunk.ctx

    def materialize(self, array: Any) -> bool:
        """Give the array its memory, with the value of all that is noted."""
        while array._pending_in is self:
            with _lock[0]:
                record = self.record
                if record is None and array._pending_in is self:
                    array._materialize(self.chunk, self.offset)
            if record is not None:
                record.compute_states(self)
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


def hide(array: Any, record: Any) -> bool:
    """Have an array changed by what is noted in `record`; whether it is known to be the only one.

    That is an array of the usual class, dense, off the tape, and changed by no other record.
    """
    state = array._pending_in
    if type(state) is State:
        with _lock[0]:
            if array._pending_in is not state or state.record is not None:
                return False
            state.record = record
            return True
    state = State(array._chunk, array._offset, record)
    if array._tape is not None or array._layout.strides is not None or state.chunk.shared:
        return False
    return put_away(array, state)


def is_hidden_in(array: Any, record: Any) -> bool:
    """Whether an array is changed by what is noted in `record`."""
    state = array._pending_in
    return type(state) is State and state.record is record


_lock = [reentrant()]  # a forked child gets another one


def hiding() -> Reentrant:
    """The lock under which arrays are hidden: what asks for the memory of one waits for it."""
    return _lock[0]


def _in_child() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    _lock[0] = reentrant()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
