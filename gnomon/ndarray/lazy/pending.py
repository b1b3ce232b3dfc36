"""Pending arrays: element-wise operators wait, so that a chain of them becomes one kernel.

What is pending. An operator that only maps elements (and stretches axes of operands that lie in
memory) gives an array without memory. It stands in a *window* of its thread: a trace of such
operators of one shape and context, with the memory that they read. Errors in shapes and dtypes come
at the call; values are those that computing at once would give, bit for bit.

When it is computed. A window is *open* until something needs it; then all its results that anybody
can still ask for are computed by one kernel, those that nobody holds any more never are, and the
window is *done*:
- an array of it is needed in memory: a read, a wait, a view, an operator of another kind or shape
  or thread that takes it, a gradient that will read it, an export (whoever asks an array for
  `_chunk` or `_address` has it computed);
- a write to memory that it reads is about to be pushed, by whomever: the engine's variable of that
  memory has the window among its `promised`. A write of a pending value is the last statement of
  the kernel and goes straight to its destination, without memory of its own;
- `wait_for_all`; a change of the engine or of settings;
- it has as many operators as pay (few for small arrays, whose kernels are compiled for the sake of
  a microsecond each), or keeps more bytes from being freed than computing would, or reads many
  bytes and its thread goes on with another shape;
- it reads memory that others than gnomon may write (shared by DLPack or with NumPy), or that is
  not computed yet, or failed (a failure must not spread to what stands beside it), laziness is off
  (`config lazy`), or the engine is the naive one: then at once, after each operator.
An operator that writes into a pending array (`y += x`) gives it another place in the window: it has
no memory that anybody could look at. So it is with an array in memory at which no other array
looks: it gives that memory to the window as the *home* of its new value, which is put there when
the window is computed. Where another array does look (a view, an executor), the write is pushed at
once. A chain on small arrays is computed by its operators' own kernels until it has been met so
often that one kernel for it pays (see `OFTEN` in `fusion_group.py`).

The usual statement (an operator of Python on two arrays, or an array and a number, met before) is
entered by native code (`native_pend.py`), a short kernel that nobody is in the way of runs by one
native call (`engine/strike.py`), and the wait for one such operator is native from begin to end
(`materialize.py`); all else goes the way that is written here, to the same end.

Who may do what. Only a window's own thread adds to it, without a lock: it publishes an operator by
setting `stage`, and begins anew where it then finds the window closed. A window that is found
*busy* was interrupted, or its thread is in a finaliser in the midst of adding: nothing more is
added. Whoever computes a window, from any thread, holds the lock of its thread and closes it first;
when it is done, its thread opens it again for what comes next. An interrupt leaves an array pending
until its memory is assigned, which comes last.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from gnomon import engine
from gnomon.context import Context
from gnomon.engine import EngineError
from gnomon.lock import reentrant
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.lazy.fused import Storing
from gnomon.ndarray.lazy.fusion_group import HELD, Window, alone, here
from gnomon.ndarray.lazy.numbers import Home, home_of
from gnomon.ndarray.lazy.trace import Rule, rule_of
from gnomon.ops import registry
from gnomon.record import put


class Mirror:
    """The place of an array whose value was stored elsewhere: it copies that before it changes."""

    __slots__ = ("__weakref__", "array", "ctx", "dest")

    def __init__(self, array: Any, dest: Any, ctx: Context) -> None:
        self.array = weakref.ref(array)
        self.dest = dest
        self.ctx = ctx
        chunk: Chunk = dest._chunk
        chunk.promised.append(Reminder(self, chunk))

    def __call__(self) -> None:
        array = self.array()
        if array is not None:
            self.settle(array)

    def settle(self, array: Any) -> bool:
        """Give the array memory of its own, with the copy, which may not be there yet."""
        with _mirrors[0]:
            if array._window is self:
                made = pend(*_copy(), (self.dest,), self.ctx)
                array._settle(made._chunk, made._address)
        return False


class Reminder:
    """The promise of a mirror, which goes with its array; it keeps no memory either."""

    __slots__ = ("chunk", "mirror")

    def __init__(self, mirror: Mirror, chunk: Chunk) -> None:
        self.mirror, self.chunk = weakref.ref(mirror), weakref.ref(chunk)

    def __call__(self) -> None:
        mirror, chunk = self.mirror(), self.chunk()
        if mirror is not None:
            mirror()
        if chunk is not None and self in chunk.promised:
            chunk.promised.remove(self)


_mirrors = [reentrant()]  # a forked child gets another one


@functools.cache
def _copy() -> tuple[Any, Home]:
    op = registry.find("_copy").parse({})
    return op, home_of(op)


# --- operators --------------------------------------------------------------------------------


def pend(op: Any, home: Home, arrays: Sequence[Any], ctx: Context, hold: bool = False) -> Any:
    """The pending result of an operator; None where it is none of those that wait.

    It is computed now if the window is full, unless `hold` says that it will be at once.

    Raises:
        ShapeError, DTypeError: the operator does not take such operands.
    """
    layouts = tuple([x._layout for x in arrays])
    rule = rule_of(op, home, layouts)
    if rule is None:
        return None
    for k in rule.spread:
        arrays[k]._chunk  # noqa: B018
    own = here.own
    made = None
    while made is None:
        window = own.window(rule.shape, ctx, arrays)
        put(window, "busy", True)
        operands = tuple([x._index if x._window is window else window.leaf(x) for x in arrays])
        made = window.add(window.stage.next(rule, operands, layouts), home.values)
    if not hold and window.full():
        window()
    return made


def pair(rule: Rule, a: Any, b: Any, hold: bool = False) -> Any:
    """`pend` of two arrays by a rule for their layouts; None where that was not in time."""
    first = a._window
    ctx = a._chunk.ctx if first is None else first.ctx
    window = here.own.window(rule.shape, ctx, (a, b))
    put(window, "busy", True)
    # asked again: another thread may have computed them since, and the window have begun anew
    i = a._index if a._window is window else window.leaf(a)
    j = b._index if b._window is window else window.leaf(b)
    stage = window.stage.after.get((rule, i, j))
    if stage is None:
        stage = window.stage.next(rule, (i, j), (a._layout, b._layout))
    made = window.add(stage, ())
    if made is None:
        return None
    if not hold and (window.eager or stage.full or window.held > HELD) and window.full():
        window()
    return made


def single(home: Home, numbers: Sequence[float], a: Any, hold: bool = False) -> Any:
    """`pend` of an array, and a number if there is one; None where no such was met before."""
    rule = home.kind.rules.get((a._layout,))
    if rule is None:
        return None
    first = a._window
    ctx = a._chunk.ctx if first is None else first.ctx
    window = here.own.window(rule.shape, ctx, (a,))
    put(window, "busy", True)
    # asked again: another thread may have computed it since, and the window have begun anew
    i = a._index if a._window is window else window.leaf(a)
    stage = window.stage.after.get((rule, i))
    if stage is None:
        stage = window.stage.next(rule, (i,), (a._layout,))
    made = window.add(stage, numbers)
    if made is None:
        return None
    if not hold and (window.eager or stage.full or window.held > HELD) and window.full():
        window()
    return made


def write(made: Any, dest: Any) -> bool:
    """Put what `pend` held into an array of its shape and dtype; whether that was in time.

    If not, nothing is done: `made` was computed, since another thread writes what it was made of.
    """
    put = housed if dest._window is None else replaced
    return put(dest, made) or store(made, dest)


def assign(value: Any, dest: Any) -> None:
    """Put a pending value, which somebody may hold, into an array that lies in memory."""
    window = value._window
    waits = type(window) is Window and alone(dest, window) and not window.full()
    if waits or not store(value, dest, kept=True):
        while not write(pend(*_copy(), (value,), value.context, hold=True), dest):
            pass


def apply(op: Any, arrays: Sequence[Any], given: Sequence[Any] | None, ctx: Context) -> Any:
    """The outputs of an operator that may wait, in a list; None where it is none of those.

    Raises:
        ShapeError, DTypeError: the operator does not take such operands.
    """
    home = home_of(op)
    if given is None:
        made = pend(op, home, arrays, ctx)
        return None if made is None else [made]
    dest = given[0]
    rule = rule_of(op, home, tuple([x._layout for x in arrays]))
    if rule is None or len(given) > 1:
        return None
    if (rule.layout.shape, rule.layout.dtype) != (dest._layout.shape, dest._layout.dtype):
        return None
    return given if write(pend(op, home, arrays, ctx, hold=True), dest) else None


def replaced(dest: Any, made: Any) -> bool:
    """Give a pending array the place of another one, which nobody else holds; whether it did."""
    before, after = dest._window, made._window
    if not (type(before) is type(after) is Window) or before.own is not after.own:
        return False
    with after.own.lock:
        if dest._window is not before or made._window is not after or before.ctx != after.ctx:
            return False
        old, new = dest._index, made._index
        home = before.homes.get(old)
        if home is not None:
            if before is not after:
                return False
            after.homes[new] = home
        put(dest, "_window", after)
        put(dest, "_index", new)
        after.results[new] = dest
        if old < len(before.results) and (before is not after or old != new):
            before.results[old] = None
        before.homes.pop(old, None)
    if after.full():
        after()
    return True


def housed(dest: Any, made: Any) -> bool:
    """Have an array in memory, at which no other looks, wait for its new value; whether it does."""
    window = made._window
    fits = type(window) is Window and dest._window is None and dest._layout is made._layout
    return fits and not window.full() and window.house(made, dest)


def store(value: Any, dest: Any, kept: bool = False) -> bool:
    """Store a pending array into another one of its shape and dtype; whether it was still pending.

    `kept` says that somebody holds it.
    """
    window = value._window
    if type(window) is not Window:
        return False
    dest = dest._detached()  # another thread may have the array pending meanwhile
    for promise in tuple(dest._chunk.promised):
        if promise is not window:
            promise()
    mirror = partial(Mirror, value, dest, window.ctx) if kept else None
    if window.store(Storing(value, dest, mirror)):
        return True
    if value._window is window:
        raise EngineError("an array was written to while it was being computed")
    engine.get().wait_for_var(value._chunk)  # what failed is raised here, and not tried for ever
    return False


def _in_child() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    _mirrors[0] = reentrant()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
