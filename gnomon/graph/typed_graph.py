"""Typed graphs: a graph with the shape and dtype of each entry, which passes take and return.

A pass is a function from `TypedGraph` to `TypedGraph`, and gives its argument back where it changes
nothing. Variables stay the nodes they are, and outputs keep their numbers, shapes and dtypes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gnomon.dtype import DType
from gnomon.expr.node import Buffer, Cast, Map, Scalar
from gnomon.expr.walk import postorder
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ground.record import record
from gnomon.ops.op import Op
from gnomon.shape import prod

Shape = tuple[int, ...]


@record(slots=False)
class TypedGraph:
    """A graph with the shape and dtype of each entry."""

    graph: Graph
    shapes: Mapping[Entry, Shape]
    types: Mapping[Entry, DType]

    def nbytes(self, entry: Entry) -> int:
        """The bytes of a dense array of its shape."""
        return prod(self.shapes[entry]) * self.types[entry].size


class Purpose(NamedTuple):
    """What a graph is rewritten for: training or prediction, with gradients or without, and the
    device that it runs on."""

    train: bool
    differentiate: bool
    device: str = "cpu"


class Kept(Op):
    """What a pass makes of parameters alone: programs keep its values while these stay the same."""


class Rewriter:
    """A graph made anew, node by node, operands first: what stands for each entry of the old one.

    `shapes` and `types` know the entries of both.
    """

    def __init__(self, typed: TypedGraph) -> None:
        self.typed = typed
        self.shapes, self.types = dict(typed.shapes), dict(typed.types)
        self.changed = False
        self._new: dict[Entry, Entry] = {}

    def now(self, entry: Entry) -> Entry:
        """What stands for an entry of the old graph, which was kept or replaced before."""
        return self._new.get(entry, entry)

    def reread(self, node: Node) -> Node:
        """`node` reading what stands for its inputs now: itself where these are what they were."""
        inputs = tuple(map(self.now, node.inputs))
        if inputs == node.inputs:
            return node
        return self.made(Node(node.op, node.name, inputs, node.attrs), node.entries())

    def made(self, new: Node, like: Iterable[Entry]) -> Node:
        """A new node, whose entries have the shapes and dtypes of these."""
        for entry, old in zip(new.entries(), like, strict=True):
            self.shapes[entry], self.types[entry] = self.shapes[old], self.types[old]
        return new

    def put(self, old: Iterable[Entry], new: Iterable[Entry]) -> None:
        """Let `new` stand for `old`."""
        for before, after in zip(old, new, strict=True):
            if before != after:
                self._new[before] = after
                self.changed = True

    def done(self) -> TypedGraph:
        """The new graph; the old one where nothing has changed."""
        if not self.changed:
            return self.typed
        return TypedGraph(Graph(map(self.now, self.typed.graph.outputs)), self.shapes, self.types)


def is_pure(node: Node) -> bool:
    """Whether a node gives the same whenever it reads the same, and changes nothing."""
    op = node.op
    return isinstance(op, Op) and op.is_expression and not op.is_random and not op.auxiliary()


@functools.lru_cache(maxsize=1024)
def is_map(
    op: Op, shapes: tuple[Shape, ...], types: tuple[DType, ...], outs: tuple[Shape, ...]
) -> bool:
    """Whether each element of the outputs is made of the elements at its own place alone."""
    if not op.is_expression or op.is_random:
        return False
    leaves = [Buffer(s, t) for s, t in zip(shapes, types, strict=True)]
    found = op.apply(leaves, train=True, out_shapes=list(outs))
    nodes = postorder([e for e in found if e is not None])
    return all(isinstance(n, Buffer | Map | Cast | Scalar) for n in nodes)
