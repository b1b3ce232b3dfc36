"""Programs: the tasks of a layout as steps on memory, joined to segments that run as a whole.

A segment is what the engine is given: a native program (kernels and library calls without the
interpreter between them), or one operator that runs on data. It knows which of the caller's
buffers it reads and writes. Segments run one after the other, or, on several contexts, side by side
where nothing orders them. What is all native is one program on several contexts too: each of its
steps has all threads already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from gnomon.context import Context
from gnomon.engine import Var
from gnomon.executor.arena import Arena
from gnomon.executor.programs.cuts import cut
from gnomon.executor.programs.data_task import DataTask
from gnomon.executor.programs.dependencies import Memory, Part, waits
from gnomon.executor.programs.layout import Delivery, Layout, size_of
from gnomon.executor.programs.weights import Copying, Weights
from gnomon.expr.node import Buffer, cast, set_address
from gnomon.graph.node import Entry
from gnomon.graph.tasks.task import Task
from gnomon.ground.record import record
from gnomon.plan.cut import reach
from gnomon.plan.statement import Store
from gnomon.runtime.compiler.progress import PROGRESS
from gnomon.runtime.devices import pool
from gnomon.runtime.execution.makings import differing
from gnomon.runtime.execution.parallel_chains import parallel_chains
from gnomon.runtime.execution.program import Program, Step
from gnomon.runtime.ffi import Block, ffi
from gnomon.runtime.kernels.rebind import Rebinder
from gnomon.runtime.kernels.template import addresses_of, blocks_of
from gnomon.runtime.statements.prepare import prepare

#: words of a block, which of them, and how much what it holds lies behind an address
Slot = tuple[Any, int, int]
Words = tuple[list[Block], list[Any], Any]  # blocks, their words, and where each one's end

_ELSEWHERE = 1 << 40  # further than any memory is from another


@record(slots=False)
class Segment:
    """Work that is done as a whole; `native` runs without the interpreter.

    `after` are the numbers of the segments that it waits for; None where it waits for all before.
    """

    run: Callable[[], None]
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    name: str
    native: bool
    ctx: Context
    program: Program | None = None
    variables: tuple[Var, ...] = ()  # of resources that it needs for itself
    turn: Any = None  # what the engine is given for a run, where `run` would not do
    after: tuple[int, ...] | None = None


def place(layout: Layout, arena: Arena) -> None:
    """Give every buffer of `layout` that is its own an address in `arena`, or its source's."""
    rooms = zip(layout.lanes, layout.plan.sizes, strict=False)  # the last may have no value
    blocks = [arena.room(ctx).reserve(size) for ctx, size in rooms]
    for key, where in layout.plan.places.items():
        assert isinstance(key, Entry)
        buffer, block = layout.buffers[key], blocks[where.buffer]
        set_address(buffer, block.address + where.offset, block)
    for entry in layout.kept:
        storage = pool.allocate(max(size_of(layout.buffers[entry]), 1), arena.ctx)
        set_address(layout.buffers[entry], storage.address, storage)
    layout.draws.place()
    for entry, source in layout.aliases.items():
        buffer, shown = layout.buffers[entry], layout.buffers[source]
        set_address(buffer, shown.address, shown)


class Builder:
    """Makes segments of the tasks of a layout; each task is compiled once, for all of them."""

    def __init__(self, layout: Layout, arena: Arena, handed: dict[object, object]) -> None:
        self.layout, self.arena, self._handed = layout, arena, handed
        self._steps: dict[Task, list[Step]] = {}
        self._blocks_of: dict[Task, list[Block]] = {}  # once they are asked for
        self._words: dict[tuple[int, int], Words] = {}  # of all blocks of a part, likewise
        self._touching: dict[int, list[Task]] | None = None  # each buffer, likewise
        self._weights = Weights(layout, arena)
        self._copying: list[Copying] = []  # of weights, taken out of the steps
        self._rebinder = Rebinder()

    def build(self, part: slice, name: str, apart: bool = False) -> tuple[Segment, ...]:
        """The tasks of `part`, compiled; with `apart`, each is a segment of its own."""
        tasks = self.layout.tasks[part]
        on_data = not all(task.is_expression for task in tasks)
        if on_data and not apart and len(self.layout.lanes) > 1:
            return self._in_parallel(tasks, name)
        numbered = list(enumerate(tasks))
        runs = groupby(numbered, key=lambda kt: (kt[1].is_expression, kt[0] if apart else -1))
        groups = ([task for _, task in group] for _, group in runs)
        return tuple(s for g in groups for s in self._segments(g, g[0].name if apart else name))

    def prepare(self) -> list[tuple[Program, tuple[Buffer, ...]]]:
        """What is done before the passes, each where a parameter that it reads has changed:
        programs, and the caller's buffers that they read."""
        if not self._weights.kept:
            return []
        for task in self.layout.tasks:
            if task.is_expression:
                self.steps(task)  # which weights are copied is known then
        self._weights.join(self._copying)
        name, of = "prepare parameters", dict[Entry, list[Program]]()
        for one in self._copying:
            of.setdefault(one.source, []).append(one.program)
        parts = list[tuple[Program, tuple[Buffer, ...]]]()
        for task in self.layout.prepare:
            steps = [*self.steps(task), *(p for e in task.made for p in of.pop(e, ()))]
            parts.append((Program(steps, name), touched(self.layout, [task])[0]))
        for source, programs in of.items():
            parts.append((Program(programs, name), (self.layout.buffers[source],)))
        return parts

    def _in_parallel(self, tasks: Sequence[Task], name: str) -> tuple[Segment, ...]:
        """Segments of one context each, which wait for what they need alone."""
        layout, segments, parts = self.layout, list[Segment](), list[Part]()
        runs = groupby(tasks, key=lambda t: (t.is_expression, layout.place_of(t)))
        for (native, ctx), group in runs:
            whole = list(group)
            for part in [whole] if native else [[task] for task in whole]:
                segments += self._segments(part, f"{name} on {ctx}")
                parts.append(Part(part, layout.lanes[ctx]))
        entries = {e for t in tasks for e in (*t.made, *t.reads) if e in layout.plan.places}
        sizes = {e: size_of(layout.buffers[e]) for e in entries}
        order = waits(parts, Memory(layout.plan.places, sizes, layout.aliases))
        return tuple(replace(s, after=after) for s, after in zip(segments, order, strict=True))

    def _segments(self, tasks: Sequence[Task], name: str) -> Iterable[Segment]:
        """Tasks that all are expressions, or all run on data."""
        if not tasks[0].is_expression:
            return map(self._on_data, tasks)
        return [self._native(part, name) for part in cut(self.layout, tasks)]

    def _native(self, tasks: Sequence[Task], name: str) -> Segment:
        """Tasks of expressions as one native program."""
        with PROGRESS.expecting(len(tasks)):
            program = Program(self._in_order(tasks), name)
        self._share(tasks)  # all in the workspace that was large enough at last
        reads, writes = touched(self.layout, tasks)
        ctx = self.layout.place_of(tasks[0])
        return Segment(program.run, reads, writes, name, True, ctx, program)

    def _in_order(self, tasks: Sequence[Task]) -> Iterable[Step]:
        """The steps of tasks; a region's is one, unless a single task is asked for."""
        regions = self.layout.regions if len(tasks) > 1 else {}
        inside = {t for chains in regions.values() for chain in chains for t in chain}
        for task in tasks:
            if task in regions:
                chains = [[s for t in chain for s in self.steps(t)] for chain in regions[task]]
                names = (chain[0].name for chain in regions[task])
                yield parallel_chains(filter(None, chains), " | ".join(names))
            elif task not in inside:
                yield from self.steps(task)

    def steps(self, task: Task) -> list[Step]:
        """The steps of a task of expressions, compiled now if they are not."""
        if task not in self._steps:
            self._steps[task] = self._made(task)
            self._copying += self._weights.take(task, self._steps[task])
            PROGRESS.ready()
            self._share([task])  # at once, or each would hold memory until the end
        return self._steps[task]

    @property
    def held(self) -> int:
        """Bytes that libraries keep for the steps that were made."""
        return sum(step.held for steps in self._steps.values() for step in steps)

    def _share(self, tasks: Sequence[Task]) -> None:
        """Let libraries' programs work where others do, those in one place that run one by one."""
        layout, found = self.layout, dict[tuple[Context, int], list[Step]]()
        for task in tasks:
            programs = [step for step in self._steps[task] if isinstance(step, Program)]
            if programs:
                place = layout.place_of(task), layout.branch_of.get(task, 0)
                found.setdefault(place, []).extend(programs)
        for (ctx, branch), steps in found.items():
            self.arena.room(ctx).share(steps, branch)

    def _made(self, task: Task) -> list[Step]:
        layout, form = self.layout, task.form
        if layout.resized is not None:
            return self._anew(task)
        wanted = deliveries(layout, task)
        operands = _operands(layout, task, wanted)
        told = form is not None and form.has_call and layout.noted is not None
        if not wanted or form is None or told:
            made = self._anew(
                task
            )  # `told`: a library's step that was moved does not say its sizes
        else:
            how = tuple([(k, w.saver, w.dest.shape, w.dest.strides) for k, w in wanted])
            make = partial(self._anew, task)
            made = self._rebinder.steps((form, how), operands, make, task.name)
        if layout.noted is not None:
            stored = [number for number, _ in wanted]
            layout.noted.note(task, stored, [*operands, *layout.draws.states], made)
        return made

    def _anew(self, task: Task) -> list[Step]:
        """New steps of a task, on operands where they are now."""
        if self.layout.resized is not None:
            return self.layout.resized.steps(task)
        return prepare(stores_of(self.layout, task), task.name)

    def slots(self, leaf: Buffer, part: slice) -> list[Slot] | None:
        """Where the address of one of the caller's buffers stands in what `part` runs.

        None where that cannot be told for sure. Kernels say which of their words are addresses. Of
        other work that reads it the steps are made once more, for another address: what differs
        accordingly is such a place.
        """
        layout, found = self.layout, []
        inside = set(layout.tasks[part])
        touching = [task for task in self.touching(leaf) if task in inside]
        shown = [
            leaf,
            *(layout.buffers[e] for e, s in layout.aliases.items() if layout.buffers[s] is leaf),
        ]
        own = range(leaf.address, leaf.address + max(size_of(leaf), 1))
        for task in touching:
            if not task.is_expression:
                return None
            if deliveries(layout, task):  # else a view, where it belongs
                places = self._said(task, shown, own) or self._moved(task, shown)
                if not places:
                    return None
                found += places
        if layout.resized is not None and layout.resized.says_addresses(touching):
            return found
        known = {(id(words), k) for words, k, _ in found}
        return found if known.issuperset(self._holding(part, own)) else None

    def touching(self, leaf: Buffer) -> list[Task]:
        """The tasks that read or write one of the caller's buffers."""
        if self._touching is None:
            layout, found = self.layout, dict[int, dict[Task, None]]()
            inner, buffers, stores = layout.plan.places, layout.buffers, layout.stores
            for task in layout.tasks:
                dests = [stores[e].dest for e in task.made if e in stores]
                shown = [layout.aliases.get(e, e) for e in task.reads]
                own = [e for e in task.made if e not in stores]
                for buffer in (*dests, *(buffers[e] for e in (*shown, *own) if e not in inner)):
                    found.setdefault(id(buffer), {})[task] = None
            self._touching = {of: [*tasks] for of, tasks in found.items()}
        return self._touching.get(id(leaf), [])

    def _holding(self, part: slice, own: range) -> Iterator[tuple[int, int]]:
        """The words of all blocks of a part that hold an address in `own`."""
        key = part.start, part.stop
        words = self._words.get(key)
        if words is None:
            tasks = self.layout.tasks[part]
            blocks = [b for t in tasks if t.is_expression for b in self._blocks(t) if len(b.words)]
            rows = [np.frombuffer(ffi.buffer(b.words), np.int64) for b in blocks]
            words = self._words[key] = blocks, rows, np.cumsum([len(row) for row in rows])
        blocks, rows, ends = words
        if not blocks:
            return
        every = np.concatenate(rows)
        for k in np.flatnonzero((every >= own.start) & (every < own.stop)):
            block = int(np.searchsorted(ends, k, side="right"))
            yield id(blocks[block].words), int(k - ends[block] + len(rows[block]))

    def _blocks(self, task: Task) -> list[Block]:
        """The argument blocks of a task's steps."""
        found = self._blocks_of.get(task)
        if found is None:
            found = [b for step in self.steps(task) for b in blocks_of(step)]
            self._blocks_of[task] = found
        return found

    def _said(self, task: Task, shown: Sequence[Buffer], own: range) -> list[Slot]:
        """The words of a task's steps that are addresses of `shown` in `own`; [] if unclear."""
        layout, found = self.layout, list[Slot]()
        used = [
            *(layout.buffers[e] for e in task.reads),
            *(d.dest for _, d in deliveries(layout, task)),
        ]
        for other in used:
            low, high = reach(other)
            if low < own.stop and own.start < high and not any(other is b for b in shown):
                return []
        for step in self.steps(task):
            words = addresses_of(step)
            if words is None:
                return []
            for block, k in words:
                if (at := block.words[k]) in own:
                    found.append((block.words, k, at - own.start))
        return found

    def _moved(self, task: Task, shown: Sequence[Buffer]) -> list[Slot]:
        """The words of a task's steps that follow the address of the buffers `shown`."""
        ours = self._blocks(task)
        for buffer in shown:
            set_address(buffer, buffer.address + _ELSEWHERE, buffer.owner)
        try:
            made = self._anew(task)
            self._weights.take(task, made)
        finally:
            for buffer in shown:
                set_address(buffer, buffer.address - _ELSEWHERE, buffer.owner)
        theirs = [b for step in made for b in blocks_of(step)]
        if [len(b.words) for b in ours] != [len(b.words) for b in theirs]:
            return []
        return [
            (word.block.words, word.number, word.first - shown[0].address)
            for word in differing(zip(ours, theirs, strict=True))
            if word.second - word.first == _ELSEWHERE
        ]

    def _on_data(self, task: Task) -> Segment:
        """An operator that runs on data."""
        layout = self.layout
        added = [entry in layout.added for entry in task.made]
        work = DataTask(task.nodes[0], layout.buffers, layout.mode.train, self._handed, added)
        reads, writes = touched(layout, [task], work.states)
        own, ctx = tuple(work.variables), layout.place_of(task)
        return Segment(work.run, reads, writes, task.name, False, ctx, variables=own)


def stores_of(layout: Layout, task: Task) -> list[Store]:
    """The statements that store what `task` makes; none for a view that lies where it belongs."""
    if task.form is None:
        return []
    values = task.form.over([layout.buffers[e] for e in task.reads])
    found = deliveries(layout, task)
    typed = [(w, cast(values[k], w.dest.dtype)) for k, w in found]
    return [Store(w.dest, w.saver, value) for w, value in typed]  # type: ignore[arg-type]


def _operands(layout: Layout, task: Task, wanted: Sequence[tuple[int, Delivery]]) -> list[Buffer]:
    """What the steps of a task read, and what they write; none where nothing is to be done."""
    if not wanted:
        return []
    return [*(layout.buffers[e] for e in task.reads), *(w.dest for _, w in wanted)]


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


def touched(
    layout: Layout, tasks: Sequence[Task], changed: Sequence[Buffer] = ()
) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """The caller's buffers that `tasks` read, and those they write."""
    planned, aliases, kept = layout.plan.places, layout.aliases, layout.kept
    reads: dict[int, Buffer] = {}
    writes = {id(b): b for b in changed}
    for task in tasks:
        shown = [aliases.get(e, e) for e in task.reads]
        sources = [source for e in shown for source in kept.get(e, (e,)) if source not in planned]
        reads.update([(id(b), b) for b in map(layout.buffers.__getitem__, sources)])
        for entry in task.made:
            delivery = layout.stores.get(entry)
            if delivery is not None:
                writes[id(delivery.dest)] = delivery.dest
            elif entry in layout.homes:
                writes[id(layout.buffers[entry])] = layout.buffers[entry]
    return tuple(reads.values()), tuple(writes.values())
