"""Tasks: what nodes do, as expressions over one buffer for each entry.

    expression task    values to store, each an expression whose leaves are buffers of entries
    data task          an operator that runs on data: it reads and writes whole entries

The buffers have no memory yet; the plan gives them some once it is known who shares with whom.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gnomon.dtype import DType
from gnomon.expr.composite import Chainer
from gnomon.expr.node import Buffer, Cast, Expr, Map
from gnomon.expr.rewrite import with_children
from gnomon.expr.walk import postorder
from gnomon.graph.node import Entry, Node
from gnomon.plan.view import viewed

Shape = tuple[int, ...]
Context = Callable[[Node], Mapping[str, Any]]

NOWHERE = 1 << 60  # stands for the address of a buffer that has none yet


@dataclass(frozen=True, eq=False)
class Task:
    """One or several nodes done as a whole; `values` is empty where they run on data."""

    nodes: tuple[Node, ...]
    values: Mapping[Entry, Expr]
    reads: tuple[Entry, ...]
    made: tuple[Entry, ...]
    is_expression: bool = True

    @property
    def name(self) -> str:
        """The names of its nodes."""
        return "+".join(n.name for n in self.nodes)


class Buffers:
    """One buffer for each entry, made when first asked for."""

    def __init__(self, shapes: Mapping[Entry, Shape], types: Mapping[Entry, DType]) -> None:
        self._shapes, self._types = shapes, types
        self._of: dict[Entry, Buffer] = {}
        self._entry: dict[int, Entry] = {}

    def __getitem__(self, entry: Entry) -> Buffer:
        if entry not in self._of:
            self.put(entry, Buffer(self._shapes[entry], self._types[entry]))
        return self._of[entry]

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._of

    def put(self, entry: Entry, buffer: Buffer) -> None:
        """Let `buffer` be the one of `entry`."""
        self._of[entry] = buffer
        self._entry[id(buffer)] = entry

    def entry(self, leaf: Expr) -> Entry | None:
        """The entry whose buffer `leaf` is."""
        return self._entry.get(id(leaf))

    def read_by(self, values: Iterable[Expr]) -> tuple[Entry, ...]:
        """The entries that `values` read, each once."""
        leaves = (self._entry.get(id(n)) for n in postorder(list(values)) if not n.children)
        return tuple(dict.fromkeys(e for e in leaves if e is not None))


def express(
    order: Iterable[Node], buffers: Buffers, used: Collection[Entry], context: Context
) -> list[Task]:
    """Tasks for the operators of `order`: what they make that is `used`, apart where it can be."""
    tasks = (task(n, buffers, used, context) for n in order if n.op is not None)
    return [part for t in tasks if t.made for part in apart(t, buffers)]


def task(node: Node, buffers: Buffers, used: Collection[Entry], context: Context) -> Task:
    """What `node` does, of which only the entries `used` are kept."""
    if not node.op.is_expression:
        return Task((node,), {}, node.inputs, tuple(node.entries()), is_expression=False)
    values = node.op.apply([buffers[e] for e in node.inputs], **context(node))
    kept = {e: v for e, v in zip(node.entries(), values, strict=True) if e in used}
    return Task((node,), kept, buffers.read_by(kept.values()), tuple(kept))


def apart(task: Task, buffers: Buffers) -> list[Task]:
    """`task` as several, each with the values that have a computation in common."""
    if len(task.values) < 2:
        return [task]
    groups: list[tuple[set[int], dict[Entry, Expr]]] = []
    for entry, value in task.values.items():
        nodes, values = {id(n) for n in postorder([value]) if _computes(n)}, {entry: value}
        for other in [g for g in groups if g[0] & nodes]:
            groups.remove(other)
            nodes |= other[0]
            values = {**other[1], **values}
        groups.append((nodes, values))
    return [
        Task(task.nodes, values, buffers.read_by(values.values()), tuple(values))
        for _, values in groups
    ]


def _computes(node: Expr) -> bool:
    """Whether a node is more than a leaf or a view of one."""
    return bool(node.children) and seen_through(node) is None


def used_entries(order: Iterable[Node], outputs: Iterable[Entry]) -> set[Entry]:
    """The entries that a node of `order` reads, and `outputs`."""
    return {e for n in order for e in n.inputs} | set(outputs)


def read_elsewhere(value: Expr) -> set[int]:
    """Ids of the nodes below `value` that it reads at another index than its own.

    What is read at its own index alone can be overwritten by `value`, and can be composed into it
    without being computed twice.
    """
    moved = [c for n in postorder([value]) if not isinstance(n, (Map, Cast)) for c in n.children]
    return {id(n) for n in postorder(moved)}


def seen_through(value: Expr) -> tuple[Buffer, Buffer] | None:
    """The buffer that `value` is a view of, and `value` as that view; None if it computes.

    A view is a buffer in another shape or with other strides: no data moves. Where the buffer has
    no place yet, the view is one of memory at `NOWHERE`.
    """
    steps = []
    while not isinstance(value, Buffer):
        moves = isinstance(value, Chainer) and len(value.children) == 1
        if not moves and not (isinstance(value, Map) and value.fn.name == "identity"):
            return None
        steps.append(value)
        value = value.children[0]
    source = seen = value
    if steps and not seen.address:
        seen = Buffer(seen.shape, seen.dtype, seen.strides, NOWHERE)
    for step in reversed(steps):
        found = seen if isinstance(step, Map) else viewed(with_children(step, [seen]))
        if not isinstance(found, Buffer):
            return None
        seen = found
    return source, seen


@dataclass(frozen=True)
class Life:
    """When entries are made and read last, in numbers of tasks."""

    born: dict[Entry, int] = field(default_factory=dict)
    dies: dict[Entry, int] = field(default_factory=dict)


def lives(tasks: Sequence[Task], end: Collection[Entry] = ()) -> Life:
    """The lives of all entries made by `tasks`; those of `end` live to the end."""
    life = Life()
    for number, each in enumerate(tasks):
        for entry in each.made:
            life.born[entry] = life.dies[entry] = number
        for entry in each.reads:
            if entry in life.born:
                life.dies[entry] = number
    for entry in end:
        if entry in life.born:
            life.dies[entry] = len(tasks)
    return life
