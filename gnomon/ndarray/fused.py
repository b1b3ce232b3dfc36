"""What a window's trace says, computed: by one kernel, or operator by operator.

The arrays computed are given their memory last, when the work was pushed: an interrupt leaves them
pending, or computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.context import Context
from gnomon.ndarray.chunk import Chunk, allocate
from gnomon.ndarray.numbers import word
from gnomon.ndarray.recipe import Recipe, dispatch
from gnomon.ndarray.trace import EMPTY
from gnomon.runtime.program import Done

#: a value, where it goes, and whether somebody may hold the value beyond that
Storing = tuple[Any, Any, bool]


def at_once(window: Any, alive: Sequence[Any], storing: Storing | None) -> None:
    """The arrays `alive`, and what is stored, by one kernel."""
    stage, ctx = window.stage, window.ctx
    leaves = window.leaves[: len(stage.leaves)]
    read = [chunk for chunk, _ in leaves]
    addresses = [address for _, address in leaves]
    chunks, outs = [], []
    for x in alive:
        chunk = allocate(x._layout.nbytes, ctx)
        chunks.append(chunk)
        addresses.append(chunk.address)
        outs.append(x._index)
    written, target = chunks, None
    if storing is not None:
        value, dest, _ = storing
        target = value._index, dest._layout, near(window, dest, len(leaves))
        addresses.append(dest._address)
        written = [*chunks, dest._chunk]
    key = tuple(outs), target
    recipe = stage.recipes.get(key) or stage.recipe(*key)
    done: Done = []
    pushed = False
    try:
        _launch(recipe, addresses, window.numbers, read, written, ctx, done)
        pushed = True
    finally:  # an interrupt may come after the work is done
        if pushed or done:
            window.settled(alive, chunks, storing)


def near(window: Any, dest: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Which of the first `count` leaves overlap a destination, and how far they lie from it."""
    chunk = dest._chunk
    found = []
    for k, (leaf, place) in enumerate(zip(window.leaves[:count], window.places, strict=False)):
        if leaf[0] is chunk or leaf[0].shared:
            low, high = dest._span()
            first, last = place[1].reach()
            if place[0] + first < high and low < place[0] + last:
                found.append((k, place[0] - dest._address))
    return tuple(found)


def one_by_one(window: Any, alive: Sequence[Any]) -> None:
    """The arrays `alive`, and what they depend on, each by the kernel of its operator."""
    stage, ctx = window.stage, window.ctx
    path = stage.path()
    mine = {x._index: x for x in alive}
    needed = set(mine)
    for k in range(stage.count - 1, -1, -1):
        if k in needed:
            needed.update(j for j in path[k].operands if j >= 0)
    memory: dict[int, tuple[Chunk, int]] = {~k: leaf for k, leaf in enumerate(window.leaves)}
    for k in sorted(needed):
        step = path[k]
        own = tuple(dict.fromkeys(step.operands))
        read = [memory[j] for j in own]
        layouts = tuple(path[j].layout if j >= 0 else stage.leaves[~j] for j in step.operands)
        single = EMPTY.next(step.rule, tuple(~own.index(j) for j in step.operands), layouts)
        chunk = allocate(step.layout.nbytes, ctx)
        memory[k] = chunk, chunk.address
        addresses = [*(address for _, address in read), chunk.address]
        numbers = window.numbers[step.numbers - len(step.rule.fields) : step.numbers]
        _launch(single.recipe((0,)), addresses, numbers, [c for c, _ in read], [chunk], ctx, [])
        if k in mine:
            window.settled([mine[k]], [chunk], None)


def _launch(
    recipe: Recipe,
    addresses: list[int],
    numbers: Sequence[float],
    read: list[Chunk],
    written: list[Chunk],
    ctx: Context,
    done: Done,
) -> None:
    """Have the engine run the recipe of a trace."""
    if recipe.numbers:
        addresses += [word(numbers[n.place], n) for n in recipe.numbers]
    dispatch(recipe, recipe.given, addresses, read, written, ctx, (read, written), done)
