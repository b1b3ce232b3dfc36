"""Which values may live in the bytes of which others: read off the forms of what makes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gnomon.graph.node import Entry
from gnomon.graph.tasks.memory import Sharing
from gnomon.graph.tasks.task import Task


def sharings(tasks: Sequence[Task]) -> list[Sharing]:
    """For each value: that it is a view of another one, or which ones it may overwrite."""
    return [s for task in tasks for s in _of(task)]


def _of(task: Task) -> Iterator[Sharing]:
    for made, source in _shown(task):
        yield Sharing(made, source, view=True)
    for value, leaf in () if task.form is None else task.form.overwrites:
        yield Sharing(task.made[value], task.reads[leaf])


def _shown(task: Task) -> Iterator[tuple[Entry, Entry]]:
    """What a task makes that is all bytes of what it reads, in their order."""
    for entry, seen in zip(task.made, () if task.form is None else task.form.seen, strict=False):
        if seen is not None and seen.same_bytes and seen.leaf is not None:
            yield entry, task.reads[seen.leaf]


def aliases(
    tasks: Sequence[Task], fixed: Collection[Entry], kept: Collection[Entry]
) -> Mapping[Entry, Entry]:
    """Entries that are nothing but views of entries that have a place and do not change.

    `fixed` have one; entries of `kept` need a place of their own.
    """
    found: dict[Entry, Entry] = {}
    for task in tasks:
        for entry, source in _shown(task):
            of = found.get(source, source)
            if of in fixed and entry not in kept:
                found[entry] = of
    return found
