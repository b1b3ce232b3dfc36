"""Pending arrays: element-wise operators wait, so that a chain of them becomes one kernel.

What is pending. An operator that only maps elements (and stretches axes of operands that lie in
memory) gives an array without memory. It stands in a *fusion group* of its thread: a trace of such
operators of one shape and context, with the memory that they read. Errors in shapes and dtypes come
at the call; values are those that computing at once would give, bit for bit.

When it is computed. A group is *open* until something needs it; then all its results that anybody
can still ask for are computed by one kernel, those that are not held any more never are, and the
group is *done*:
- an array of it is needed in memory: a read, a wait, a view, an operator of another kind or shape
  or thread that takes it, a gradient that will read it, an export (code that asks an array for
  `_chunk` or `_offset` has it computed);
- a write to memory that it reads is about to be pushed, by any code: the engine's variable of that
  memory has the group among its `pending_readers`. A write of a pending value is the last statement
  of the kernel and goes straight to its destination, without memory of its own;
- `wait_for_all`; a change of the engine or of settings;
- it has as many operators as pay (few for small arrays, whose kernels are compiled for the sake of
  a microsecond each), or keeps more bytes from being freed than computing would, or reads many
  bytes and its thread goes on with another shape;
- it reads memory that others than gnomon may write (shared by DLPack or with NumPy), or that is
  not computed yet, or failed (a failure must not spread to what stands beside it), laziness is off
  (`config lazy`), or the engine is the naive one: then at once, after each operator.
An operator that writes into a pending array (`y += x`) gives it another place in the group: it has
no memory that anybody could look at. So it is with an array in memory at which no other array
looks: it gives that memory to the group as the in-place target of its new value, which is put there
when the group is computed. Where another array does look (a view, an executor), the write is pushed
at once. A chain on small arrays is computed by its operators' own kernels until it has been met so
often that one kernel for it pays (see `OFTEN` in `fusion_group.py`).

The usual statement (an operator of Python on two arrays, or an array and a number, met before) is
entered by native code (`native_pend.py`), a short kernel that no job is in the way of runs by one
native call (`engine/fast_path.py`), and the wait for one such operator is native from begin to end
(`materialize.py`); all else goes the way that is written here, to the same end.

Who may do what. Only a group's own thread adds to it, without a lock: it publishes an operator by
setting `trace`, and begins anew where it then finds the group closed. A group that is found
*busy* was interrupted, or its thread is in a finaliser in the midst of adding: nothing more is
added. A thread that computes a group holds the lock of its thread and closes it first;
when it is done, its thread opens it again for what comes next. An interrupt leaves an array pending
until its memory is assigned, which comes last.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any

from gnomon import engine
from gnomon.base import MidwayError
from gnomon.context import Context
from gnomon.ground.lock import in_child, reentrant
from gnomon.ground.record import put
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.lazy.fused import Lost, Storing
from gnomon.ndarray.lazy.fusion_group import HELD, FusionGroup, alone, here
from gnomon.ndarray.lazy.numbers import Sharing, sharing_of
from gnomon.ndarray.lazy.trace import Rule, rule_of
from gnomon.ops import registry


class Mirror:
    """The place of an array whose value was stored elsewhere: it copies that before it changes."""

    __slots__ = ("__weakref__", "array", "ctx", "dest")

    def __init__(self, array: Any, dest: Any, ctx: Context) -> None:
        self.array = weakref.ref(array)
        self.dest = dest
        self.ctx = ctx
        chunk: Chunk = dest._chunk
        chunk.pending_readers.append(Reminder(self, chunk))

    def __call__(self) -> None:
        array = self.array()
        if array is not None:
            self.materialize(array)

    def materialize(self, array: Any) -> bool:
        """Give the array memory of its own, with the copy, which may not be there yet."""
        with _mirrors[0]:
            if array._pending_in is self:
                made = pend(*_copy(), (self.dest,), self.ctx)
                array._materialize(made._chunk, made._offset)
        return False


class Reminder:
    """The pending reader that is a mirror's; it goes with its array, and keeps no memory."""

    __slots__ = ("chunk", "mirror")

    def __init__(self, mirror: Mirror, chunk: Chunk) -> None:
        self.mirror, self.chunk = weakref.ref(mirror), weakref.ref(chunk)

    def __call__(self) -> None:
        mirror, chunk = self.mirror(), self.chunk()
        if mirror is not None:
            mirror()
        if chunk is not None and self in chunk.pending_readers:
            chunk.pending_readers.remove(self)


_mirrors = [reentrant()]  # a forked child gets another one


@functools.cache
def _copy() -> tuple[Any, Sharing]:
    op = registry.find("_copy").parse({})
    return op, sharing_of(op)


# --- operators --------------------------------------------------------------------------------


def pend(op: Any, sharing: Sharing, arrays: Sequence[Any], ctx: Context, hold: bool = False) -> Any:
    """The pending result of an operator; None where it is none of those that wait.

    It is computed now if the group is full, unless `hold` says that it will be at once.

    Raises:
        ShapeError, DTypeError: the operator does not take such operands.
    """
    layouts = tuple([x._layout for x in arrays])
    rule = rule_of(op, sharing, layouts)
    if rule is None:
        return None
    for k in rule.spread:
        arrays[k]._chunk  # noqa: B018
    own = here.own
    made = None
    while made is None:
        group = own.group(rule.shape, ctx, arrays)
        put(group, "busy", True)
        operands = tuple([x._index if x._pending_in is group else group.leaf(x) for x in arrays])
        made = group.add(group.trace.next(rule, operands, layouts), sharing.values)
    if not hold and group.full():
        _compute(group, made)
    return made


def pair(rule: Rule, a: Any, b: Any, hold: bool = False) -> Any:
    """`pend` of two arrays by a rule for their layouts; None where that was not in time."""
    first = a._pending_in
    ctx = a._chunk.ctx if first is None else first.ctx
    group = here.own.group(rule.shape, ctx, (a, b))
    put(group, "busy", True)
    # asked again: another thread may have computed them since, and the group have begun anew
    i = a._index if a._pending_in is group else group.leaf(a)
    j = b._index if b._pending_in is group else group.leaf(b)
    trace = group.trace.after.get((rule, i, j))
    if trace is None:
        trace = group.trace.next(rule, (i, j), (a._layout, b._layout))
    made = group.add(trace, ())
    if made is None:
        return None
    if not hold and (group.eager or trace.full or group.held > HELD) and group.full():
        _compute(group, made)
    return made


def single(sharing: Sharing, numbers: Sequence[float], a: Any, hold: bool = False) -> Any:
    """`pend` of an array, and a number if there is one; None where no such was met before."""
    rule = sharing.kind.rules.get((a._layout,))
    if rule is None:
        return None
    first = a._pending_in
    ctx = a._chunk.ctx if first is None else first.ctx
    group = here.own.group(rule.shape, ctx, (a,))
    put(group, "busy", True)
    # asked again: another thread may have computed it since, and the group have begun anew
    i = a._index if a._pending_in is group else group.leaf(a)
    trace = group.trace.after.get((rule, i))
    if trace is None:
        trace = group.trace.next(rule, (i,), (a._layout,))
    made = group.add(trace, numbers)
    if made is None:
        return None
    if not hold and (group.eager or trace.full or group.held > HELD) and group.full():
        _compute(group, made)
    return made


def _compute(group: FusionGroup, made: Any) -> None:
    """Compute a group that is full, of which `made` is.

    Raises:
        DeviceError, MemoryError: there is no memory for `made`.
    """
    group()
    if type(made._pending_in) is Lost:
        made._pending_in.materialize(made)


def write(made: Any, dest: Any) -> bool:
    """Put what `pend` held into an array of its shape and dtype; whether that was in time.

    If not, nothing is done: `made` was computed, since another thread writes what it was made of.
    """
    put = kept_in_place if dest._pending_in is None else replaced
    return put(dest, made) or store(made, dest)


def assign(value: Any, dest: Any) -> None:
    """Put a pending value, which may be held elsewhere, into an array that lies in memory."""
    group = value._pending_in
    waits = type(group) is FusionGroup and alone(dest, group) and not group.full()
    if waits or not store(value, dest, kept=True):
        while not write(pend(*_copy(), (value,), value.context, hold=True), dest):
            pass


def apply(op: Any, arrays: Sequence[Any], given: Sequence[Any] | None, ctx: Context) -> Any:
    """The outputs of an operator that may wait, in a list; None where it is none of those.

    Raises:
        ShapeError, DTypeError: the operator does not take such operands.
    """
    sharing = sharing_of(op)
    if given is None:
        made = pend(op, sharing, arrays, ctx)
        return None if made is None else [made]
    dest = given[0]
    rule = rule_of(op, sharing, tuple([x._layout for x in arrays]))
    if rule is None or len(given) > 1:
        return None
    if (rule.layout.shape, rule.layout.dtype) != (dest._layout.shape, dest._layout.dtype):
        return None
    return given if write(pend(op, sharing, arrays, ctx, hold=True), dest) else None


def replaced(dest: Any, made: Any) -> bool:
    """Give a pending array the place of another one, which no other code holds; whether it did."""
    before, after = dest._pending_in, made._pending_in
    if not (type(before) is type(after) is FusionGroup) or before.own is not after.own:
        return False
    with after.own.lock:
        old, new, same = dest._index, made._index, before is after
        target = before.in_place.get(old)
        if before.ctx != after.ctx or (target is not None and not same):
            return False
        listed = old < len(before.results) and not (same and old == new)
        moved = map(put, repeat(dest), ("_pending_in", "_index"), (after, new))
        # no call from here to `any`: no handler computes between
        if dest._pending_in is not before or made._pending_in is not after:
            return False
        if target is not None:
            after.in_place[new] = target
        after.results[new] = dest
        if listed:
            before.results[old] = None
        any(moved)
        before.in_place.pop(old, None)
    if after.full():
        after()
    return True


def kept_in_place(dest: Any, made: Any) -> bool:
    """Have an array in memory, at which no other looks, wait for its new value; whether it does."""
    group = made._pending_in
    fits = type(group) is FusionGroup and dest._pending_in is None and dest._layout is made._layout
    return fits and not group.full() and group.house(made, dest)


def store(value: Any, dest: Any, kept: bool = False) -> bool:
    """Store a pending array into another one of its shape and dtype; whether it was still pending.

    `kept` says that it is held elsewhere.
    """
    group = value._pending_in
    if type(group) is not FusionGroup:
        return False
    dest = dest._detached()  # another thread may have the array pending meanwhile
    dest._chunk.push_pending_readers(but=group)
    mirror = partial(Mirror, value, dest, group.ctx) if kept else None
    if group.store(Storing(value, dest, mirror)):
        return True
    if value._pending_in is group:
        raise MidwayError("an array was written to while it was being computed")
    engine.get().wait_for_var(value._chunk)  # what failed is raised here, and not tried for ever
    return False


def _in_child() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    _mirrors[0] = reentrant()


in_child(_in_child)
