"""Weights in the layout that a library reads them in, kept from pass to pass.

oneDNN brings the weight of a convolution into a layout of its own before it computes. Where few
pictures are predicted that takes longer than computing. There parameters stay the same: the copying
is taken out of the step, and is done where one of them has changed (`executor/prepared.py`).
Programs that take turns in an arena share the copies: each makes them again when it finds a change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from gnomon.executor.arena import Arena
from gnomon.executor.programs.layout import Layout, size_of
from gnomon.expr.node import set_address
from gnomon.graph.node import Entry
from gnomon.graph.tasks.task import Task
from gnomon.plan.cut import overlap, reach
from gnomon.runtime.devices import pool
from gnomon.runtime.execution.program import Program, Step
from gnomon.runtime.libraries.dnn import DnnStep


class Copying(NamedTuple):
    """The program that copies the weight of `step`, which lies `offset` bytes behind `source`."""

    source: Entry
    offset: int
    step: DnnStep
    program: Program


class Weights:
    """The weights of a layout's steps; `kept` says whether their copies are kept at all."""

    def __init__(self, layout: Layout, arena: Arena) -> None:
        self.kept = layout.mode.fuse and not layout.mode.differentiate
        self._layout, self._arena = layout, arena

    def take(self, task: Task, steps: Iterable[Step]) -> list[Copying]:
        """Take the copying of weights out of the steps of a task, as far as these are kept."""
        found = []
        for step in steps if self.kept else ():
            if isinstance(step, DnnStep) and step.copies.nbytes:
                source = self._source(task, step.address("weight"))
                if source is not None:
                    found.append(self._taken(task, step, source))
        return found

    def _taken(self, task: Task, step: DnnStep, source: Entry) -> Copying:
        offset = step.address("weight") - self._layout.buffers[source].address
        key = self._origin(source), offset, step.copies.layouts
        room = self._arena.room(self._layout.place_of(task))
        return Copying(source, offset, step, step.keep_copies(room.copies(key, step.copies.nbytes)))

    def _source(self, task: Task, address: int) -> Entry | None:
        """What `task` reads at an address, where that stays the same during a pass."""
        for entry in task.reads:
            source = self._layout.aliases.get(entry, entry)
            low, high = reach(self._layout.buffers[source])
            if low <= address < high and self._stays(source):
                return source
        return None

    def _stays(self, entry: Entry) -> bool:
        """Whether it is a variable that no task writes, or made of variables before the pass."""
        layout = self._layout
        if entry.node.op is not None:
            return entry in layout.kept
        buffer = layout.buffers[entry]
        written = [d.dest for d in layout.stores.values()] + [
            layout.buffers[e] for e in layout.homes
        ]
        return entry not in layout.plan.places and not any(overlap(buffer, w) for w in written)

    def _origin(self, source: Entry) -> Hashable:
        """What tells alike the values of a source in several programs."""
        layout, node = self._layout, source.node
        read = layout.kept.get(source, (source,))
        return node.op, source.index, tuple(layout.buffers[e].address for e in read)

    def join(self, copying: Iterable[Copying]) -> None:
        """Let sources that are made before the pass, and read by nothing but these programs, lie in
        one place: each is copied before the next one is made."""
        found: dict[Entry, list[Copying]] = {}
        for one in copying:
            found.setdefault(one.source, []).append(one)
        layout = self._layout
        reads = Counter(layout.aliases.get(e, e) for task in layout.tasks for e in task.reads)
        brief = [e for e in found if e in layout.kept and reads[e] == len(found[e])]
        if not brief:
            return
        place = pool.allocate(max(size_of(layout.buffers[e]) for e in brief))
        for entry in brief:
            set_address(layout.buffers[entry], place.address, place)
            for one in found[entry]:
                one.step.bind(weight=place.address + one.offset)
