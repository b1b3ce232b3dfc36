"""What a group's trace says, computed: by one kernel, or operator by operator.

The arrays computed are given their memory last, when the work was pushed: an interrupt leaves them
pending, or computed. Where no variable is in use, both happen in one native call: a fast path (see
`engine/fast_path.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from gnomon import engine
from gnomon.base import DeviceError
from gnomon.context import Context
from gnomon.ground.record import put
from gnomon.ndarray.core.chunk import Chunk, allocate
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.lazy.numbers import word
from gnomon.ndarray.lazy.recipe import Recipe, dispatch
from gnomon.ndarray.lazy.trace import EMPTY, Near
from gnomon.runtime.execution.program import Done


def _unheld(results: Sequence[Any]) -> int:
    """The count of what a list alone refers to, seen from a loop over it."""
    for x in results:
        count = _getrefcount(x)
    return count


_getrefcount = sys.getrefcount
_UNHELD = _unheld([object()])


class Storing(NamedTuple):
    """A value of a group, and the array that it goes to.

    `kept` gives the place that the value has from then on, where it may be held elsewhere.
    """

    value: Any
    dest: Any
    kept: Callable[[], Any] | None


class NotFused(Exception):
    """Operators could not be made one kernel, for the reason that is its cause."""


class Lost:
    """Where results are pending that could not be computed: asking for them raises why."""

    __slots__ = ("ctx", "error")

    def __init__(self, error: Exception, ctx: Context) -> None:
        self.error, self.ctx = error, ctx

    def materialize(self, array: Any) -> bool:
        """Raise the error: another one each time, since a traceback refers to what was lost."""
        made = type(self.error).__new__(type(self.error), *self.error.args)
        made.__dict__.update(self.error.__dict__)
        raise made from None


LACK = DeviceError, MemoryError  # where there is not memory enough


def held(group: Any, value: Any) -> list[Any]:
    """The results of a group that other code holds, but `value`."""
    count, found = group.trace.count, []
    for x in group.results:
        if _getrefcount(x) <= _UNHELD or x is None or x is value:
            continue
        if x._pending_in is group and x._index < count:
            found.append(x)
    return found


def lone(group: Any, array: Any) -> bool:
    """The result of the only operator of a group, in one native call; whether that was possible.

    What `at_once` does, for what programs do most, in few steps.
    """
    try:
        put(group, "working", True)  # a signal's handler that computes leaves it alone
        return array._pending_in is group and _landed(group, array)
    finally:
        put(group, "working", False)


def _landed(group: Any, array: Any) -> bool:
    trace = group.trace
    if trace.count != 1:
        return False
    if group.in_place:
        chunk, offset = group.in_place[0]
        address = chunk.address + offset
        near = neighbours(group, chunk, address, array._layout, len(trace.leaves))
        recipe = trace.recipes.get(((0,), None, ((0, near),)))
    else:
        recipe = trace.sole
    way = None if recipe is None else recipe.way()
    if recipe is None or way is None:
        return False
    if not group.in_place:
        chunk = allocate(trace.layout.nbytes, group.ctx)
        address = chunk.address
    addresses = [*group.addresses, address]
    if recipe.numbers:
        addresses += [word(group.numbers[n.place], n) for n in recipe.numbers]
    done: bool = engine.get().try_fast_path(way, group.read, [chunk], addresses, [array])
    return done


def at_once(group: Any, alive: Sequence[Any], storing: Storing | None) -> None:
    """The arrays `alive`, and what is stored, by one kernel.

    Raises:
        NotFused: there is no such kernel; nothing was done.
    """
    count = len(group.trace.leaves)
    read = group.read[:count]  # an interrupt may have left more than the trace knows of
    addresses = group.addresses[:count]
    written: list[Chunk] = []
    recipe = _placed(group, alive, storing, addresses, written)
    if recipe.numbers:
        numbers = group.numbers
        addresses += [word(numbers[n.place], n) for n in recipe.numbers]
    if storing is None or storing.kept is None:
        way = recipe.way()
        if way is not None and engine.get().try_fast_path(way, read, written, addresses, alive):
            return
    _push(recipe, addresses, read, written, group, alive, storing)


def _placed(
    group: Any,
    alive: Sequence[Any],
    storing: Storing | None,
    addresses: list[int],
    written: list[Chunk],
) -> Recipe:
    """The recipe for all that is wanted; its memory is added to `addresses` and `written`."""
    trace, ctx, in_place = group.trace, group.ctx, group.in_place
    count = len(addresses)
    outs, near = [], []
    for x in alive:
        index = x._index
        if index in in_place:
            chunk, offset = in_place[index]
            address = chunk.address + offset
            near.append((len(outs), neighbours(group, chunk, address, x._layout, count)))
        else:
            chunk = allocate(x._layout.nbytes, ctx)
            address = chunk.address
        written.append(chunk)
        addresses.append(address)
        outs.append(index)
    target = None
    if storing is not None:
        dest = storing.dest
        chunk, layout = dest._chunk, dest._layout
        address = chunk.address + dest._offset
        target = storing.value._index, layout, neighbours(group, chunk, address, layout, count)
        addresses.append(address)
        written.append(chunk)
    key = tuple(outs), target, tuple(near)
    try:
        found: Recipe = trace.recipes.get(key) or trace.recipe(*key)
    except Exception as error:
        raise NotFused from error
    return found


def _push(
    recipe: Recipe,
    addresses: list[int],
    read: list[Chunk],
    written: list[Chunk],
    group: Any,
    alive: Sequence[Any],
    storing: Storing | None,
) -> None:
    """Have the engine run a recipe, and give what it computes to its arrays."""
    done: Done = []
    pushed = False
    places = addresses[len(read) : len(read) + len(alive)]
    seen = written[-1].version
    try:
        keep = read, written
        dispatch(recipe, recipe.given, addresses, read, written, group.ctx, keep, done)
        pushed = True
    finally:  # an interrupt may come after the work is done
        if pushed or done or written[-1].version != seen:
            if storing is not None and storing.kept is not None:
                put(storing.value, "_pending_in", storing.kept())
            for x, chunk, address in zip(alive, written, places, strict=False):
                x._materialize(chunk, address - chunk.address)


def neighbours(group: Any, chunk: Chunk, address: int, layout: Layout, count: int) -> Near:
    """Which of the first `count` leaves overlap what is written, and how far from it they lie."""
    found = []
    for (place, lies), number in group.places.items():
        leaf = group.read[~number]
        if (leaf is chunk or leaf.shared) and ~number < count:
            if place == address and lies is layout:
                found.append((~number, 0))
                continue
            low, high = layout.reach()
            first, last = lies.reach()
            if place + first < address + high and address + low < place + last:
                found.append((~number, place - address))
    return tuple(found)


def one_by_one(group: Any, alive: Sequence[Any]) -> None:
    """The arrays `alive`, and what they depend on, each by the kernel of its operator.

    They get new memory, those in place too: what is there may have to be read again after an
    interrupt. An operator that has no kernel fails alone, and what depends on it: as in the engine.
    """
    trace = group.trace
    path = trace.path()
    mine = {x._index: x for x in alive}
    needed = set(mine)
    for k in range(trace.count - 1, -1, -1):
        if k in needed:
            needed.update(j for j in path[k].operands if j >= 0)
    leaves = zip(group.read, group.addresses, strict=False)
    memory: dict[int, tuple[Chunk, int]] = {~k: leaf for k, leaf in enumerate(leaves)}
    for k in sorted(needed):
        step = path[k]
        own = tuple(dict.fromkeys(step.operands))
        layouts = tuple(path[j].layout if j >= 0 else trace.leaves[~j] for j in step.operands)
        single = EMPTY.next(step.rule, tuple(~own.index(j) for j in step.operands), layouts)
        chunk = allocate(step.layout.nbytes, group.ctx)
        memory[k] = chunk, chunk.address
        held = [mine[k]] if k in mine else []
        read = [memory[j][0] for j in own]
        try:
            recipe = single.recipe((0,))
        except Exception as error:
            _poison(chunk, error, step.rule.op.name)
            for x in held:
                x._materialize(chunk)
            continue
        addresses = [*(memory[j][1] for j in own), chunk.address]
        numbers = group.numbers[step.numbers - len(step.rule.fields) : step.numbers]
        addresses += [word(numbers[n.place], n) for n in recipe.numbers]
        _push(recipe, addresses, read, [chunk], group, held, None)


def fused_or_not(group: Any, alive: Sequence[Any], storing: Storing | None) -> Exception | None:
    """`alive`, and what is stored, by one kernel; why there is none, where it is one by one."""
    try:
        if alive or storing is not None:
            at_once(group, alive, storing)
    except NotFused as found:  # no operand is to be lost for it
        one_by_one(group, alive if storing is None else [*alive, storing.value])
        return cast(Exception, found.__cause__)
    return None


def apart(
    group: Any, alive: Sequence[Any], storing: Storing | None, told: list[Exception]
) -> Exception | None:
    """As `fused_or_not`, each by itself: there was not memory enough for all of them.

    What there is no memory for is lost, and `told`; so is it where operators are computed when they
    are called. Those in place come last: the others may read what is there.

    Raises:
        DeviceError, MemoryError: nothing was stored.
    """
    waiting = [x for x in alive if x._pending_in is group]
    for x in waiting:
        if x._index not in group.in_place:
            try:
                fused_or_not(group, [x], None)
            except LACK as error:
                told.append(error.with_traceback(None))  # that keeps memory from being freed
                put(x, "_pending_in", Lost(error, group.ctx))
    targets = [x for x in waiting if x._index in group.in_place]
    try:
        return fused_or_not(group, targets, storing)
    except LACK as error:
        if storing is not None:
            raise
        for x in targets:
            if x._pending_in is group:
                chunk, offset = group.in_place[x._index]
                _poison(chunk, error, group.trace.rule.op.name)
                x._materialize(chunk, offset)
    return None


def is_lost(array: Any) -> bool:
    """Whether an array could not be computed for want of memory; a sparse one never is."""
    return type(getattr(array, "_pending_in", None)) is Lost


def _poison(chunk: Chunk, error: Exception, name: str) -> None:
    """Have the engine fail in the place of an operator that has no kernel."""

    def fail(run_ctx: Any) -> None:
        raise error

    engine.get().push_checked(fail, chunk.ctx, (), (chunk,), name)
