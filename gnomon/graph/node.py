"""Graphs: nodes that hold an operator or stand for a variable, joined by entries.

    Variable    a node without operator: an argument, a state, or the gradient of an output
    Operator    a node whose operator computes outputs from the entries it reads
    Entry       one output of a node: what nodes read, and what a graph gives

A node's inputs never change, so graphs share nodes freely and a pass makes new ones. Readers walk
iteratively: a chain of 100,000 nodes is an ordinary graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gnomon.expr.node import Expr
from gnomon.ground.record import cached_property


class Operator(Protocol):
    """What a node asks of its operator; `ops.op.Op` and `graph.gradient.Gradient` have it."""

    @property
    def name(self) -> str:
        """The operator's name in messages and files."""

    @property
    def is_expression(self) -> bool:
        """Whether `apply` gives the outputs as expressions; otherwise it runs on data."""

    @property
    def has_expression(self) -> bool:
        """The same of devices with memory of their own."""

    @property
    def num_visible_outputs(self) -> int:
        """How many of the outputs others may read."""

    def inputs(self) -> tuple[str, ...]:
        """Names of what it reads, in order."""

    def outputs(self) -> tuple[str, ...]:
        """Names of what it gives, hidden outputs last."""

    def apply(self, inputs: Sequence[Any], **context: Any) -> tuple[Expr | None, ...]:
        """The outputs as expressions of the inputs."""


class Entry(NamedTuple):
    """One output of a node.

    >>> Entry(Node(None, "x"), 0)
    x
    """

    node: Node
    index: int = 0  # type: ignore[assignment]  # the field hides tuple.index, which is not needed

    def __repr__(self) -> str:
        return self.node.name + (f":{self.index}" if self.index else "")


_new = tuple.__new__


class Node:
    """An operator with the entries it reads, or (`op` None) a variable.

    `attrs` holds the texts a model file holds: what was given of the operator's parameters, and
    attributes of the user (`__ctx_group__`, `__lr_mult__`). `versions` say, where a file did,
    how often each input was changed before it is read.
    """

    __slots__ = ("attrs", "inputs", "name", "op", "versions")

    def __init__(
        self,
        op: Any,
        name: str,
        inputs: Iterable[Entry] = (),
        attrs: Mapping[str, str] | None = None,
    ) -> None:
        self.op = op
        self.name = name
        self.inputs = tuple(inputs)
        self.attrs = dict(attrs or {})
        self.versions: tuple[int, ...] = ()

    @property
    def num_outputs(self) -> int:
        """How many entries it has, hidden ones included."""
        return 1 if self.op is None else len(self.op.outputs())

    @property
    def num_visible_outputs(self) -> int:
        """How many entries others may read."""
        return 1 if self.op is None else int(self.op.num_visible_outputs)

    def entries(self) -> list[Entry]:
        """All of its entries, hidden ones included."""
        count = 1 if self.op is None else len(self.op.outputs())
        return [_new(Entry, (self, k)) for k in range(count)]  # half the time of Entry(self, k)

    def visible(self) -> list[Entry]:
        """The entries others may read."""
        return [Entry(self, k) for k in range(self.num_visible_outputs)]

    def __repr__(self) -> str:
        return f"<{self.op.name if self.op else 'variable'} {self.name}>"


def variable(name: str, **attrs: str) -> Entry:
    """The entry of a new variable."""
    return Entry(Node(None, name, (), attrs))


class Graph:
    """What some entries need to be computed.

    >>> x = variable("x")
    >>> [n.name for n in Graph([x, x]).topo]
    ['x']
    """

    def __init__(self, outputs: Iterable[Entry]) -> None:
        self.outputs = tuple(outputs)

    @cached_property
    def topo(self) -> tuple[Node, ...]:
        """Every node once, operands first, in the order that a search from the outputs finds."""
        return tuple(search(e.node for e in self.outputs))

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of every node in that order, hidden ones included."""
        return tuple([e for n in self.topo for e in n.entries()])

    @cached_property
    def variables(self) -> tuple[Node, ...]:
        """The variables in that order: arguments and states."""
        return tuple(n for n in self.topo if n.op is None)

    @cached_property
    def states(self) -> frozenset[Node]:
        """The variables that an operator changes."""
        return frozenset(
            e.node for n in self.topo if n.op is not None for e in states_of(n) if e.node.op is None
        )

    @property
    def arguments(self) -> list[Node]:
        """The variables that no operator changes."""
        return [n for n in self.variables if n not in self.states]

    @property
    def auxiliary(self) -> list[Node]:
        """The variables that an operator changes, in order."""
        return [n for n in self.variables if n in self.states]

    @cached_property
    def consumers(self) -> dict[Entry, list[Node]]:
        """For each entry that is read: its readers, one that reads it twice stands twice."""
        found: dict[Entry, list[Node]] = {}
        for node in self.topo:
            for entry in node.inputs:
                found.setdefault(entry, []).append(node)
        return found


def states_of(node: Node) -> tuple[Entry, ...]:
    """The inputs of an operator's node that it changes: its last ones."""
    count = len(node.op.auxiliary())
    return node.inputs[len(node.inputs) - count :] if count else ()


def search(starts: Iterable[Node]) -> Iterator[Node]:
    """Every node that `starts` depend on, operands first: depth first, without recursion."""
    seen: set[Node] = set()
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(start.inputs))]
        while stack:
            node, rest = stack[-1]
            operand = next((e.node for e in rest if e.node not in seen), None)
            if operand is None:
                stack.pop()
                yield node
            else:
                seen.add(operand)
                stack.append((operand, iter(operand.inputs)))


def input_versions(node: Node, changes: dict[Node, int]) -> tuple[int, ...]:
    """How often each input of `node` was changed before it is read, as MXNet's files count.

    `changes` counts for the nodes so far, and is told of those that `node` makes.
    """
    changed = () if node.op is None else states_of(node)
    for entry in changed:
        if entry.node.op is None:
            changes[entry.node] = changes.get(entry.node, 0) + 1
    return node.versions or tuple(changes.get(e.node, 0) for e in node.inputs)


def rebuilt(graph: Graph, replace: Mapping[Node, Entry]) -> Graph:
    """A copy of `graph` in which the entries of `replace` stand for those variables.

    Every other node is copied, so that the copy's attributes are its own.
    """
    new: dict[Node, Node] = {}

    def moved(entry: Entry) -> Entry:
        return replace[entry.node] if entry.node in replace else Entry(new[entry.node], entry.index)

    for node in graph.topo:
        if node not in replace:
            new[node] = Node(node.op, node.name, map(moved, node.inputs), node.attrs)
    return Graph(map(moved, graph.outputs))
