"""Dependencies between segments of a program, where those of several contexts run in parallel.

Segments of one context run in order. One waits for an earlier one of another context where both use
the same bytes of planned memory and one of them writes there: a value that is read elsewhere is
waited for, and so is the last reader of what is overwritten. What both do to the caller's arrays,
the engine orders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon.graph.node import Entry
from gnomon.graph.tasks.memory import Place
from gnomon.graph.tasks.task import Task

Table = np.ndarray[Any, np.dtype[np.int64]]


class Part(NamedTuple):
    """What a segment does, and in which lane: the number of its context."""

    tasks: Sequence[Task]
    lane: int


class Memory(NamedTuple):
    """Where the entries of a program lie, and their sizes; `aliases` are views of the caller's."""

    places: Mapping[Any, Place]
    sizes: Mapping[Entry, int]
    aliases: Mapping[Entry, Entry]

    def used(self, entries: Iterable[Entry]) -> Iterator[tuple[int, int, int]]:
        """The planned bytes of `entries`: buffer, begin, end."""
        for entry in entries:
            place = self.places.get(entry)
            if place is not None and entry not in self.aliases:
                yield place.buffer, place.offset, place.offset + self.sizes[entry]


def waits(parts: Sequence[Part], memory: Memory) -> list[tuple[int, ...]]:
    """For each of `parts` the numbers of those before that it waits for: the last of each lane."""
    uses = [_uses(part.tasks, memory) for part in parts]
    rows = np.array([(k, *use) for k, part in enumerate(uses) for use in part], np.int64)
    table = rows.reshape(-1, 5).T
    lanes = np.array([part.lane for part in parts], np.int64)
    found = []
    for number, part in enumerate(uses):
        before = table[:, : np.searchsorted(table[0], number)]
        others = {k for use in part for k in _clashing(before, *use)}
        others.update(np.flatnonzero(lanes[:number] == lanes[number])[-1:].tolist())
        found.append(_latest(others, parts))
    return found


def _uses(tasks: Sequence[Task], memory: Memory) -> set[tuple[int, int, int, int]]:
    """Buffer, begin and end of all that `tasks` use; 1 at last where it is written."""
    made = {(*use, 1) for t in tasks for use in memory.used(t.made)}
    return made | {(*use, 0) for t in tasks for use in memory.used(t.reads)}


def _clashing(before: Table, buffer: int, begin: int, end: int, writes: int) -> list[int]:
    """The numbers in `before` of those that use these bytes, where either writes."""
    part, buffers, begins, ends, written = before
    meets = (buffers == buffer) & (begins < end) & (begin < ends)
    found: list[int] = np.unique(part[meets & ((written | writes) == 1)]).tolist()
    return found


def _latest(numbers: Collection[int], parts: Sequence[Part]) -> tuple[int, ...]:
    """Of each lane the last one: it has waited for the others."""
    return tuple({parts[k].lane: k for k in sorted(numbers)}.values())
