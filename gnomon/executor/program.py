"""Programs: the tasks of a layout as steps on memory, joined to segments that run as a whole.

A segment is what the engine is given: a native program (kernels and library calls without the
interpreter between them), or one operator that runs on data. It knows which of the caller's
buffers it reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gnomon.engine import Var
from gnomon.executor.arena import Arena
from gnomon.executor.layout import Delivery, Layout, size_of
from gnomon.executor.opaque import DataTask
from gnomon.expr.node import Buffer
from gnomon.graph.node import Entry
from gnomon.graph.task import Task
from gnomon.plan.statement import Store
from gnomon.runtime import pool
from gnomon.runtime.again import Again
from gnomon.runtime.prepare import prepare
from gnomon.runtime.program import Program, Step
from gnomon.runtime.template import blocks_of

#: words of a block, which of them, and how much what it holds lies behind an address
Slot = tuple[Any, int, int]

_ELSEWHERE = 1 << 40  # further than any memory is from another


@dataclass(frozen=True)
class Segment:
    """Work that is done as a whole; `native` runs without the interpreter."""

    run: Callable[[], None]
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    name: str
    native: bool
    program: Program | None = None
    variables: tuple[Var, ...] = ()  # of resources that it needs for itself


def place(layout: Layout, arena: Arena) -> None:
    """Give every buffer of `layout` that is its own an address in `arena`, or its source's."""
    block = arena.reserve(layout.plan.total)
    for key, where in layout.plan.places.items():
        assert isinstance(key, Entry)
        buffer = layout.buffers[key]
        buffer.address, buffer.owner = block.address + where.offset, block
    for entry in layout.kept:
        storage = pool.allocate(max(size_of(layout.buffers[entry]), 1), arena.ctx)
        layout.buffers[entry].address, layout.buffers[entry].owner = storage.address, storage
    for entry, source in layout.aliases.items():
        buffer, shown = layout.buffers[entry], layout.buffers[source]
        buffer.address, buffer.owner = shown.address, shown


class Builder:
    """Makes segments of the tasks of a layout; each task is compiled once, for all of them."""

    def __init__(self, layout: Layout, arena: Arena) -> None:
        self.layout, self.arena = layout, arena
        self._states: dict[object, object] = {}  # what operators on data hand on to backward
        self._steps: dict[Task, list[Step]] = {}
        self._again = Again()

    def build(self, part: slice, name: str, apart: bool = False) -> tuple[Segment, ...]:
        """The tasks of `part`, compiled; with `apart`, each is a segment of its own."""
        return tuple(self._segments(self.layout.tasks[part], name, apart))

    def prepare(self) -> Segment | None:
        """What is done before, where a parameter has changed; None where there is no such."""
        tasks = self.layout.prepare
        return self._native(tasks, "prepare parameters") if tasks else None

    def _segments(self, tasks: Sequence[Task], name: str, apart: bool) -> Iterable[Segment]:
        numbered = list(enumerate(tasks))
        runs = groupby(numbered, key=lambda kt: (kt[1].is_expression, kt[0] if apart else -1))
        for (native, _), group in runs:
            part = [task for _, task in group]
            if native:
                yield self._native(part, part[0].name if apart else name)
            else:
                yield from map(self._on_data, part)

    def _native(self, tasks: Sequence[Task], name: str) -> Segment:
        """Tasks of expressions as one native program."""
        steps = [step for task in tasks for step in self.steps(task)]
        self.arena.share(steps)
        program = Program(steps, name)
        touched = _touched(self.layout, tasks)
        return Segment(program.run, *touched, name, native=True, program=program)

    def steps(self, task: Task) -> list[Step]:
        """The steps of a task of expressions, compiled now if they are not."""
        if task not in self._steps:
            self._steps[task] = self._made(task)
            self.arena.share(self._steps[task])  # at once, or each would hold memory until the end
        return self._steps[task]

    def _made(self, task: Task) -> list[Step]:
        form, wanted = task.form, deliveries(self.layout, task)
        if not wanted:
            return []

        def make() -> list[Step]:
            return prepare(stores_of(self.layout, task), task.name)

        if form is None or form.has_call:
            return make()
        how = tuple([(k, w.saver, w.dest.shape, w.dest.strides) for k, w in wanted])
        operands = [*(self.layout.buffers[e] for e in task.reads), *(w.dest for _, w in wanted)]
        return self._again.steps((form, how), operands, make, task.name)

    def slots(self, leaf: Buffer, part: slice) -> list[Slot] | None:
        """Where the address of one of the caller's buffers stands in what `part` runs.

        None where that cannot be told for sure. The steps of what reads it are made once more, for
        another address: what differs accordingly is such a place.
        """
        layout, found = self.layout, []
        tasks = layout.tasks[part]
        shown = [
            leaf,
            *(layout.buffers[e] for e, s in layout.aliases.items() if layout.buffers[s] is leaf),
        ]
        for task in tasks:
            read = [layout.buffers[layout.aliases.get(e, e)] for e in task.reads]
            if not any(b is leaf for b in read):
                continue
            if not task.is_expression:
                return None
            if deliveries(layout, task):  # else a view, where it belongs
                if not (places := self._moved(task, shown)):
                    return None
                found += places
        words = {(id(words), k) for words, k, _ in found}
        own = range(leaf.address, leaf.address + max(size_of(leaf), 1))
        for step in (s for task in tasks if task.is_expression for s in self.steps(task)):
            for block in blocks_of(step):
                if any(
                    w in own and (id(block.words), k) not in words
                    for k, w in enumerate(block.words)
                ):
                    return None
        return found

    def _moved(self, task: Task, shown: Sequence[Buffer]) -> list[Slot]:
        """The words of a task's steps that follow the address of the buffers `shown`."""
        ours = [b for step in self.steps(task) for b in blocks_of(step)]
        for buffer in shown:
            buffer.address += _ELSEWHERE
        try:
            made = prepare(stores_of(self.layout, task), task.name)
        finally:
            for buffer in shown:
                buffer.address -= _ELSEWHERE
        theirs = [b for step in made for b in blocks_of(step)]
        if [len(b.words) for b in ours] != [len(b.words) for b in theirs]:
            return []
        return [
            (a.words, k, x - shown[0].address)
            for a, b in zip(ours, theirs, strict=True)
            for k, (x, y) in enumerate(zip(a.words, b.words, strict=True))
            if y - x == _ELSEWHERE
        ]

    def _on_data(self, task: Task) -> Segment:
        """An operator that runs on data."""
        layout = self.layout
        work = DataTask(task.nodes[0], layout.buffers, layout.mode.train, self._states)
        touched = _touched(layout, [task], work.states)
        own = tuple(work.variables)
        return Segment(work.run, *touched, task.name, native=False, variables=own)


def stores_of(layout: Layout, task: Task) -> list[Store]:
    """The statements that store what `task` makes; none for a view that lies where it belongs."""
    if task.form is None:
        return []
    values = task.form.over([layout.buffers[e] for e in task.reads])
    found = deliveries(layout, task)
    return [Store(w.dest, w.saver, values[k]) for k, w in found]  # type: ignore[arg-type]


def deliveries(layout: Layout, task: Task) -> list[tuple[int, Delivery]]:
    """Where each value of `task` is stored, by its number; views that lie there are not."""
    found = []
    for number, entry in enumerate(task.made if task.form is not None else ()):
        goal = layout.stores.get(entry) or Delivery(entry, layout.buffers[entry], "saveto")
        if not _lies_there(layout, task, number, goal):
            found.append((number, goal))
    return found


def _lies_there(layout: Layout, task: Task, number: int, goal: Delivery) -> bool:
    """Whether a value is a view that has come to lie where it belongs."""
    seen = None if task.form is None else task.form.seen[number]
    if seen is None or seen.leaf is None or not seen.same_bytes or goal.saver != "saveto":
        return False
    return goal.dest.contiguous and (
        layout.buffers[task.reads[seen.leaf]].address == goal.dest.address
    )


def _touched(
    layout: Layout, tasks: Sequence[Task], changed: Sequence[Buffer] = ()
) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """The caller's buffers that `tasks` read, and those they write."""
    planned = layout.plan.places
    reads: dict[int, Buffer] = {}
    writes = {id(b): b for b in changed}
    for task in tasks:
        shown = (layout.aliases.get(e, e) for e in task.reads)
        for source in (o for e in shown for o in layout.kept.get(e, (e,))):
            if source not in planned:
                reads[id(layout.buffers[source])] = layout.buffers[source]
        for entry in task.made:
            delivery = layout.stores.get(entry)
            if delivery is not None:
                writes[id(delivery.dest)] = delivery.dest
            elif entry in layout.homes:
                writes[id(layout.buffers[entry])] = layout.buffers[entry]
    return tuple(reads.values()), tuple(writes.values())
