"""Fusion: tasks whose result one other task reads, at its own index alone, become part of it.

Composed expressions are stored by one kernel, and what lay between them needs no memory. A task
is composed into its reader when it makes one value, which nothing else reads and nobody outside
wants, and every element is read once. Zeros and views (a reshape) go into every reader.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gnomon.expr.composite import Call
from gnomon.expr.node import Expr
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.graph.node import Entry
from gnomon.graph.task import Buffers, Task, read_elsewhere, seen_through

LARGEST = 24  # nodes in one task: beyond that kernels become slow to compile, not faster
LEAVES = 24


def fuse(tasks: Sequence[Task], buffers: Buffers, kept: Collection[Entry]) -> list[Task]:
    """`tasks` with those composed that may be; entries of `kept` stay what they are.

    The order of what remains is that of `tasks`.
    """
    readers = _readers(tasks)
    offered: dict[Entry, Task] = {}
    fused: list[Task] = []
    for task in tasks:
        parts = _parts(task, offered, readers, buffers)
        for part in parts:
            readers[part.made[0]] -= 1
        whole = _composed(task, parts, buffers) if parts else task
        fused.append(whole)
        if whole.is_expression and len(whole.made) == 1 and whole.made[0] not in kept:
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


def _parts(
    task: Task, offered: dict[Entry, Task], readers: dict[Entry, int], buffers: Buffers
) -> list[Task]:
    """Those of the `offered` tasks that are composed into `task`."""
    if not task.is_expression:
        return []
    elsewhere = set().union(*map(read_elsewhere, task.values.values()))
    nodes, leaves = len(task.nodes), len(task.reads)
    parts = []
    for entry in task.reads:
        part = offered.get(entry)
        if part is None:
            continue
        nodes, leaves = nodes + len(part.nodes), leaves + len(part.reads)
        once = readers[entry] == 1 and id(buffers[entry]) not in elsewhere
        if (once and nodes <= LARGEST and leaves <= LEAVES) or _free(part, readers[entry]):
            parts.append(part)
    return parts


def _free(part: Task, readers: int) -> bool:
    """Whether a task costs its readers nothing: it has no operands, or shows an entry as it is."""
    if not part.reads:
        return not any(isinstance(n, Call) for n in postorder(_values(part)))
    seen = seen_through(_values(part)[0])
    return seen is not None and (readers == 1 or seen[1].contiguous)


def _values(task: Task) -> list[Expr]:
    return list(task.values.values())


def _composed(task: Task, parts: list[Task], buffers: Buffers) -> Task:
    """`task` with the values of `parts` in place of the buffers it read them from."""
    replace: dict[Expr, Expr] = {buffers[e]: v for p in parts for e, v in p.values.items()}
    new = substitute(_values(task), replace)
    nodes = tuple(dict.fromkeys(n for t in (*parts, task) for n in t.nodes))
    values = dict(zip(task.values, new, strict=True))
    inner = {p.made[0]: p.reads for p in parts}
    reads = dict.fromkeys(r for e in task.reads for r in inner.get(e, (e,)))
    return Task(nodes, values, tuple(reads), task.made)
