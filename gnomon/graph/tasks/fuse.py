"""Fusion: tasks whose result is read once, element by element, become part of their readers.

Composed expressions are stored by one kernel, and what lay between them needs no memory. A task
without calls is composed into its reader when it makes one value, which nothing else reads and
nothing outside wants, and which is read at its own index alone, on one context. Maps that readers
take in another order (a transpose), or a part each (a split), go into these, where no more elements
are computed than they have. Zeros and views (a reshape) go into every reader. A matrix product goes
into what only multiplies it by a number: a library does that as it stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from gnomon.expr.call.dot import Dot
from gnomon.expr.node import Buffer, Map
from gnomon.expr.rewrite import substitute
from gnomon.graph.gradient import SUM_AT_ONCE
from gnomon.graph.node import Entry
from gnomon.graph.tasks.form import Form
from gnomon.graph.tasks.task import Buffers, Task
from gnomon.plan.cut import scaled
from gnomon.shape import prod

LARGEST = 24  # nodes in one task: beyond that kernels become slow to compile, not faster
LEAVES = 24


Where = Callable[[Task], Hashable]


def _anywhere(task: Task) -> Hashable:
    """There is one place."""
    return None


def fuse(
    tasks: Sequence[Task], buffers: Buffers, kept: Collection[Entry], where: Where = _anywhere
) -> list[Task]:
    """`tasks` with those composed that may be; entries of `kept` stay what they are.

    What computes stays `where` it is. The order of what remains is that of `tasks`.
    """
    readers, taken = _readers(tasks), _taken(tasks)
    offered: dict[Entry, Task] = {}
    fused: list[Task] = []
    for task in tasks:
        parts = _parts(task, offered, readers, taken, where)
        for entry in parts:
            readers[entry] -= 1
        whole = _composed(task, parts, buffers) if parts else task
        fused.append(whole)
        if whole.form is not None and _is_offered(whole.form) and whole.made[0] not in kept:
            offered[whole.made[0]] = whole
    gone = {id(t) for e, t in offered.items() if not readers.get(e, 0)}
    return [t for t in fused if id(t) not in gone]


def _readers(tasks: Sequence[Task]) -> dict[Entry, int]:
    """How many tasks read each entry."""
    count: dict[Entry, int] = {}
    for task in tasks:
        for entry in task.reads:
            count[entry] = count.get(entry, 0) + 1
    return count


def _taken(tasks: Sequence[Task]) -> dict[Entry, float]:
    """How many elements of each entry tasks take by maps and moves; `inf` where others read it."""
    count: dict[Entry, float] = {}
    for task in tasks:
        every = (math.inf,) * len(task.reads) if task.form is None else task.form.taken
        for entry, taken in zip(task.reads, every, strict=True):
            count[entry] = count.get(entry, 0) + taken
    return count


def _is_offered(form: Form) -> bool:
    """Whether readers may compute what `form` says themselves.

    A sum of many, as of a gradient's shares, is there to let go of them: it stands where it is.
    """
    if len(form.values) != 1:
        return False
    if form.has_call:
        return isinstance(form.values[0], Dot)
    sums = all(isinstance(n, Map) and n.fn.name == "add" for n in form.nodes if n.children)
    return not sums or len(form.leaves) < SUM_AT_ONCE


def _parts(
    task: Task,
    offered: dict[Entry, Task],
    readers: dict[Entry, int],
    taken: dict[Entry, float],
    where: Where,
) -> dict[Entry, Task]:
    """Those of the `offered` tasks that are composed into `task`, by what they make."""
    if task.form is None:
        return {}
    nodes, leaves = len(task.nodes), len(task.reads)
    parts = {}
    for number, entry in enumerate(task.reads):
        part = offered.get(entry)
        if part is None:
            continue
        nodes, leaves = nodes + len(part.nodes), leaves + len(part.reads)
        assert part.form is not None
        if part.form.has_call and not _is_multiple(task.form):
            continue
        once = readers[entry] == 1 and number not in task.form.elsewhere
        once = once or (part.form.moves and taken[entry] <= prod(part.form.values[0].shape))
        small = nodes <= LARGEST and leaves <= LEAVES and where(part) == where(task)
        if (once and small) or _free(part, readers[entry], task):
            parts[entry] = part
    return parts


def _is_multiple(form: Form) -> bool:
    """Whether a form is what it reads times a number that libraries take."""
    (value, *more) = form.values
    return not more and isinstance(value, Map) and scaled(value)[0] is form.leaves[0]


def _free(part: Task, readers: int, reader: Task) -> bool:
    """Whether a task costs its readers nothing: it has no operands, or shows an entry as it is.

    A library reads no values without memory.
    """
    assert part.form is not None and reader.form is not None
    if not part.reads:
        return not reader.form.has_call
    (seen,) = part.form.seen
    return seen is not None and (readers == 1 or seen.contiguous)


def _composed(task: Task, parts: Mapping[Entry, Task], buffers: Buffers) -> Task:
    """`task` with the values of `parts` in place of what it read from them."""
    assert task.form is not None
    form = task.form
    reads = dict.fromkeys(r for e in task.reads for r in (parts[e].reads if e in parts else (e,)))
    numbers = {entry: k for k, entry in enumerate(reads)}
    wires = tuple(
        Wire(parts[e].form, tuple([numbers[r] for r in parts[e].reads]))
        if e in parts
        else Wire(None, (numbers[e],))
        for e in task.reads
    )
    whole = buffers.once((form, wires), lambda: _joined(form, wires, len(reads)))
    nodes = tuple(dict.fromkeys(n for t in (*parts.values(), task) for n in t.nodes))
    return Task(nodes, whole, tuple(reads), task.made)


class Wire(NamedTuple):
    """What stands for a leaf: the value of a form over leaves of the whole, or one of these."""

    form: Form | None
    leaves: tuple[int, ...]


def _joined(form: Form, wires: Sequence[Wire], count: int) -> Form:
    """`form` with what `wires` say in place of its leaves; the result has `count` leaves."""
    ends = [(k, x) for w, old in zip(wires, form.leaves, strict=True) for k, x in _ends(w, old)]
    leaves = [Buffer(x.shape, x.dtype, x.strides) for _, x in sorted(dict(ends).items())]
    assert len(leaves) == count
    new = []
    for wire in wires:
        ours = [leaves[k] for k in wire.leaves]
        new.append(ours[0] if wire.form is None else wire.form.over(ours)[0])
    return Form(substitute(form.values, dict(zip(form.leaves, new, strict=True))), leaves)


def _ends(wire: Wire, leaf: Buffer) -> Iterable[tuple[int, Buffer]]:
    """The leaves of the whole that `wire` leads to, each with one that it is like."""
    return zip(wire.leaves, (leaf,) if wire.form is None else wire.form.leaves, strict=True)
