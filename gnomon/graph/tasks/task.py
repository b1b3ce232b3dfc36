"""Tasks: what nodes do, as forms over what they read.

    expression task    values to store, each an expression of what the task reads
    data task          an operator that runs on data: it reads and writes whole entries

Each entry has one buffer. It has no memory yet; the plan gives it some once it is known who shares
with whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, ItemsView, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from gnomon.dtype import DType
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.walk import postorder
from gnomon.graph.node import Entry, Node, Operator
from gnomon.graph.tasks.form import Form, Spec, seen_through
from gnomon.ground.record import record
from gnomon.runtime.devices.device import find

T = TypeVar("T")
Shape = tuple[int, ...]
Context = Callable[[Node], Mapping[str, Any]]


@record(eq=False, slots=False)
class Task:
    """One or several nodes done as a whole; `form` is None where they run on data.

    `reads` stand in the order of the form's leaves, `made` in that of its values.
    """

    nodes: tuple[Node, ...]
    form: Form | None
    reads: tuple[Entry, ...]
    made: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """The names of its nodes."""
        return "+".join(n.name for n in self.nodes)

    @property
    def is_expression(self) -> bool:
        """Whether it is done by kernels and libraries."""
        return self.form is not None

    @property
    def values(self) -> dict[Entry, Expr]:
        """What it makes, over the stand-ins of its form."""
        return {} if self.form is None else dict(zip(self.made, self.form.values, strict=True))


class Buffers:
    """One buffer for each entry, in the memory of `device`, made when first asked for.

    `known` keeps what was found out about forms, by question: the next layer asks the same.
    """

    def __init__(
        self, shapes: Mapping[Entry, Shape], types: Mapping[Entry, DType], device: str = "cpu"
    ) -> None:
        self._shapes, self._types, self._device = shapes, types, device
        self._host = find(device).host
        self._of: dict[Entry, Buffer] = {}
        self.known: dict[Hashable, Any] = {}

    def __getitem__(self, entry: Entry) -> Buffer:
        found = self._of.get(entry)
        if found is None:
            found = self.add(entry, Spec.dense(self._shapes[entry], self._types[entry]))
        return found

    def takes_expression(self, op: Operator) -> bool:
        """Whether what the device does of an operator is an expression."""
        return op.is_expression if self._host else op.has_expression

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._of

    def items(self) -> ItemsView[Entry, Buffer]:
        """The buffers that were made so far."""
        return self._of.items()

    def put(self, entry: Entry, buffer: Buffer) -> None:
        """Let `buffer` be the one of `entry`."""
        self._of[entry] = buffer

    def add(self, entry: Entry, spec: Spec) -> Buffer:
        """The buffer of an entry, a new one."""
        made = self._of[entry] = Buffer(*spec, device=self._device)
        return made

    def spec(self, entry: Entry) -> Spec:
        """What of the buffer of `entry` decides what can be done with it."""
        found = self[entry]
        return Spec(found.shape, found.dtype, found.strides)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is known of `key`: `make` gives it when it is asked for first."""
        found: T | None = self.known.get(key)
        if found is None:
            found = self.known[key] = make()
        return found


class Part(NamedTuple):
    """A form, and which of the entries that were asked for it reads and makes, by number."""

    form: Form
    reads: tuple[int, ...]
    made: tuple[int, ...]

    def task(self, node: Node, reads: Sequence[Entry], made: Sequence[Entry]) -> Task:
        """The part as a task on these entries."""
        ours = tuple([reads[k] for k in self.reads]), tuple([made[k] for k in self.made])
        return Task((node,), self.form, *ours)


Divide = Callable[[Mapping[int, Expr], Sequence[Buffer]], Iterable[Part]]


class Kind(NamedTuple):
    """What tells alike what nodes do: their operator, what they read, and in which context."""

    what: Hashable
    slots: tuple[int, ...]  # for each of the inputs, the number of the entry that it is
    specs: tuple[Spec, ...]  # of these entries, each once


def express(
    order: Iterable[Node], buffers: Buffers, used: Collection[Entry], context: Context
) -> list[Task]:
    """Tasks for the operators of `order`: what they make that is `used`, apart where it can be."""
    return [t for n in order if n.op is not None for t in tasks(n, buffers, used, context)]


def tasks(
    node: Node, buffers: Buffers, used: Collection[Entry], context: Context
) -> Iterable[Task]:
    """What `node` does, of which only the entries `used` are kept.

    The first comes last, as readers follow: the gradient of a layer's data behind that of its
    weight, which reads the data, so that these may go before the gradient has memory.
    """
    entries = node.entries()
    if not buffers.takes_expression(node.op):
        return [Task((node,), None, node.inputs, tuple(entries))]
    wanted = tuple([e in used for e in entries])
    given = context(node)
    told = tuple(map(tuple, given.get("out_shapes", ()))), given.get("train")

    def values(inputs: Sequence[Buffer]) -> dict[int, Expr]:
        found = node.op.apply(inputs, **given)
        return {k: v for k, v in enumerate(found) if wanted[k]}

    reads, parts = alike((node.op, wanted, told), node.inputs, buffers, values, apart)
    return [part.task(node, reads, entries) for part in reversed(parts)]


def alike(
    what: Hashable,
    inputs: Iterable[Entry],
    buffers: Buffers,
    values: Callable[[Sequence[Buffer]], Mapping[int, Expr]],
    divide: Divide,
) -> tuple[tuple[Entry, ...], tuple[Part, ...]]:
    """The entries among `inputs`, each once, and what is made of them, in the parts of `divide`.

    `values` gives it by number. Both are asked once for `what` on entries that are alike, unless it
    gives memory of its own each time, as for a draw.
    """
    numbers: dict[Entry, int] = {}
    slots = tuple([numbers.setdefault(e, len(numbers)) for e in inputs])
    kind = Kind(what, slots, tuple([buffers.spec(e) for e in numbers]))
    parts: tuple[Part, ...] | None = buffers.known.get(kind)
    if parts is None:
        leaves = [Buffer(*spec) for spec in kind.specs]
        made = values([leaves[k] for k in slots])
        parts = tuple(divide(made, leaves))
        if closed(parts, leaves):
            buffers.known[kind] = parts
    return tuple(numbers), parts


def closed(parts: Iterable[Part], leaves: Iterable[Buffer]) -> bool:
    """Whether `parts` read no other memory than that of `leaves`."""
    ours = set(map(id, leaves))
    return all(id(n) in ours for p in parts for n in p.form.nodes if isinstance(n, Buffer))


def apart(made: Mapping[int, Expr], leaves: Sequence[Buffer]) -> Iterable[Part]:
    """Parts of `made`, each with the values that have a computation in common."""
    if len(made) == 1:
        return [_part(made, leaves)]
    below = {number: set(postorder([value])) for number, value in made.items()}
    uses = Counter(chain.from_iterable(below.values()))
    common = {node for node, count in uses.items() if count > 1 and _computes(node)}
    groups: list[tuple[set[Expr], dict[int, Expr]]] = []
    for number, value in made.items():
        nodes, values = below[number] & common, {number: value}
        for other in [g for g in groups if g[0] & nodes]:
            groups.remove(other)
            nodes |= other[0]
            values = {**other[1], **values}
        groups.append((nodes, values))
    return [_part(values, leaves) for _, values in groups]


def whole(made: Mapping[int, Expr], leaves: Sequence[Buffer]) -> Iterable[Part]:
    """All of `made` as one part, if there is any."""
    return [_part(made, leaves)] if made else []


def _part(made: Mapping[int, Expr], leaves: Sequence[Buffer]) -> Part:
    numbers = {id(leaf): k for k, leaf in enumerate(leaves)}
    form = Form.of(tuple(made.values()), leaves)
    return Part(form, tuple(numbers[id(x)] for x in form.leaves), tuple(made))


def _computes(node: Expr) -> bool:
    """Whether a node is more than a leaf or a view of one."""
    return bool(node.children) and seen_through(node) is None


def used_entries(order: Iterable[Node], outputs: Iterable[Entry]) -> set[Entry]:
    """The entries that a node of `order` reads, and `outputs`."""
    return {e for n in order for e in n.inputs} | set(outputs)


@record(slots=False)
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
