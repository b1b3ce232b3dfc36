"""Which values may live in the bytes of which others: read off the expressions that make them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.walk import postorder
from gnomon.graph.memory import Sharing
from gnomon.graph.node import Entry
from gnomon.graph.task import NOWHERE, Buffers, Task, read_elsewhere, seen_through


def sharings(tasks: Sequence[Task], buffers: Buffers) -> list[Sharing]:
    """For each value: that it is a view of another one, or which ones it may overwrite."""
    return [s for task in tasks for e, v in task.values.items() for s in _of(task, e, v, buffers)]


def _of(task: Task, entry: Entry, value: Expr, buffers: Buffers) -> Iterator[Sharing]:
    source = same_bytes(value)
    if source is not None:
        found = buffers.entry(source)
        if found is not None:
            yield Sharing(entry, found, view=True)
        return
    nodes = postorder([value])
    if any(isinstance(n, Call) for n in nodes):
        return  # a library may write before it has read everything
    others = [v for e, v in task.values.items() if e != entry]
    elsewhere = read_elsewhere(value).union(map(id, postorder(others)))
    for node in nodes:
        found = buffers.entry(node)
        if found is None or id(node) in elsewhere:
            continue
        if node.shape == value.shape and node.dtype is value.dtype:
            yield Sharing(entry, found)


def same_bytes(value: Expr) -> Buffer | None:
    """The buffer whose bytes, in their order, are all that `value` is; None if it is more."""
    seen = seen_through(value)
    if seen is None or not seen[1].contiguous:
        return None
    if seen[1] is not seen[0] and seen[1].address != (seen[0].address or NOWHERE):
        return None
    return seen[0] if seen[0].contiguous and _count(seen[0]) == _count(seen[1]) else None


def _count(buffer: Buffer) -> int:
    count = 1
    for n in buffer.shape:
        count *= n
    return count


def aliases(
    tasks: Sequence[Task], buffers: Buffers, fixed: Collection[Entry], kept: Collection[Entry]
) -> Mapping[Entry, Entry]:
    """Entries that are nothing but views of entries that have a place and do not change.

    `fixed` have one; entries of `kept` need a place of their own.
    """
    found: dict[Entry, Entry] = {}
    for task in tasks:
        for entry, value in task.values.items():
            source = same_bytes(value)
            of = None if source is None else buffers.entry(source)
            of = found.get(of, of) if of is not None else None
            if of is not None and of in fixed and entry not in kept:
                found[entry] = of
    return found
