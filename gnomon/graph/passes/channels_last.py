"""Layout: convolutions, and what lies between them, on pictures whose channels come last.

A library computes convolutions and poolings of such data without bringing them into a layout of its
own and back: oneDNN of float32, cuDNN of 16 bits, by tensor cores. Each convolution is given
(N, H, W, C) and gives that; poolings, normalizations, joins of channels and element-wise operators
go along; before anything else a transpose is inserted, once for each value. Outside of the graph
nothing changes.

oneDNN brings weights into a layout of its own, cuDNN reads them with the channels last as well. In
prediction a program keeps them so. Gradients are derived from the graph that this pass leaves, so
those of weights come back as the weights are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gnomon.expr import ext
from gnomon.expr.node import Buffer, Expr
from gnomon.graph.node import Entry, Graph, Node, states_of
from gnomon.graph.typed_graph import Kept, Purpose, Shape, TypedGraph, is_map
from gnomon.ops import registry
from gnomon.ops.nn.convolution import FIRST_TO_LAST, LAST_TO_FIRST, Convolution, WeightFirst
from gnomon.ops.op import describe
from gnomon.runtime.devices.device import find
from gnomon.runtime.statements.prepare import backend_of
from gnomon.shape import is_channels_last, row_major

CHANNELS = (1, -3)  # the axis of channels, when they come first


class Turned(NamedTuple):
    """An operator on pictures with the channels last, and which inputs and outputs are pictures."""

    op: Any
    inputs: frozenset[int]
    outputs: frozenset[int] = frozenset((0,))


class WeightLast(Kept):
    """The weight of a convolution (filters, C, h, w) as (filters, h, w, C).

    No operator of the users: what this pass makes where a program may keep it.
    """

    name = "_weight_last"
    input_names = ("weight",)

    def forward(self, weight: Expr) -> Expr:
        return ext.transpose(weight, FIRST_TO_LAST)


describe(WeightLast)


def channels_last(typed: TypedGraph, purpose: Purpose) -> TypedGraph:
    """`typed` with pictures in that layout; itself where no convolution gains by it."""
    made = _Pass(typed, purpose)
    return made.run() if any(map(made.gains, typed.graph.topo)) else typed


class _Pass:
    """`first` and `last` are the new entry of each old one in either form, as far as there is one;
    `natural` are those whose operator gives them with the channels last."""

    def __init__(self, typed: TypedGraph, purpose: Purpose) -> None:
        self.typed, self.keeps = typed, not purpose.differentiate
        self.host = find(purpose.device).host
        self.libraries = backend_of(Buffer((), device=purpose.device)).libraries
        self.shapes, self.types = dict(typed.shapes), dict(typed.types)
        self.first: dict[Entry, Entry] = {}
        self.last: dict[Entry, Entry] = {}
        self.natural: set[Entry] = set()

    def run(self) -> TypedGraph:
        """The new graph."""
        for node in self.typed.graph.topo:
            turned = None if node.op is None else self._turned(node)
            if turned is None:
                self._keep(node)
            else:
                self._turn(node, turned)
        outputs = [self._as_first(e) for e in self.typed.graph.outputs]
        return TypedGraph(Graph(outputs), self.shapes, self.types)

    def _keep(self, node: Node) -> None:
        """Let `node` compute as it does, on what it knows."""
        inputs = tuple(map(self._as_first, node.inputs))
        new = node
        if inputs != node.inputs:
            new = Node(node.op, node.name, inputs, node.attrs)
            self._know(new, node.entries())
        self.first.update(zip(node.entries(), new.entries(), strict=True))

    def gains(self, node: Node) -> bool:
        """Whether a node is a convolution of pictures that is faster so; on processors, of all
        their channels or of each by itself."""
        op = node.op
        if op is None or op.name != "Convolution":
            return False
        usual = len(op.kernel) == 2 and op.layout in (None, "NCHW")
        groups = op.num_group in (1, op.num_filter) or not self.host
        return usual and groups and self.libraries.prefers_last(self.types[node.inputs[0]])

    def _convolution(self, node: Node) -> Turned:
        weight, turned = node.inputs[1], frozenset((0,))
        kind: type[Convolution] = WeightFirst
        shape = self.shapes[weight]
        if not self.host and not is_channels_last(shape, row_major(shape)):
            kind, turned = Convolution, frozenset((0, 1))
            if self.keeps and weight.node.op is None and weight not in self.last:
                self.last[weight] = self._by(WeightLast.parse({}), weight, True)
        return Turned(kind.parse({**node.op.attrs(), "layout": "NHWC"}), turned)

    def _turn(self, node: Node, turned: Turned) -> None:
        """Let `node` compute on pictures with the channels last."""
        inputs = [
            self._as_last(e) if k in turned.inputs else self._as_first(e)
            for k, e in enumerate(node.inputs)
        ]
        new = Node(turned.op, node.name, inputs, node.attrs)
        self._know(new, node.entries())
        for k, (entry, made) in enumerate(zip(node.entries(), new.entries(), strict=True)):
            if k in turned.outputs:
                self.shapes[made] = _ordered(self.shapes[entry], FIRST_TO_LAST)
                self.last[entry] = made
                self.natural.add(entry)
            else:
                self.first[entry] = made

    def _know(self, new: Node, like: Iterable[Entry]) -> None:
        for entry, old in zip(new.entries(), like, strict=True):
            self.shapes[entry], self.types[entry] = self.shapes[old], self.types[old]

    def _as_first(self, entry: Entry) -> Entry:
        if entry not in self.first:
            self.first[entry] = self._by(_transpose(LAST_TO_FIRST), entry, False)
        return self.first[entry]

    def _as_last(self, entry: Entry) -> Entry:
        if entry not in self.last:
            self.last[entry] = self._by(_transpose(FIRST_TO_LAST), entry, True)
        return self.last[entry]

    def _by(self, op: Any, entry: Entry, last: bool) -> Entry:
        """`entry` with its channels `last` or first, as `op` makes it of the other form."""
        source = (self.first if last else self.last)[entry]
        name, axes = ("last", FIRST_TO_LAST) if last else ("first", LAST_TO_FIRST)
        made = Entry(Node(op, f"{entry!r}_channels_{name}", [source]), 0)
        self.shapes[made] = _ordered(self.shapes[source], axes)
        self.types[made] = self.types[source]
        return made

    def _turned(self, node: Node) -> Turned | None:
        """How `node` computes on pictures with the channels last; None where it does not."""
        if self.gains(node):
            return self._convolution(node)
        pictures = frozenset(k for k, e in enumerate(node.inputs) if e in self.natural)
        if not pictures:
            return None
        rule = RULES.get(node.op.name)
        if rule is not None:
            return rule(node.op, len(node.inputs))
        return self._of_a_map(node)

    def _of_a_map(self, node: Node) -> Turned | None:
        shapes = tuple(self.shapes[e] for e in node.inputs)
        types = tuple(self.types[e] for e in node.inputs)
        outs = tuple(self.shapes[e] for e in node.entries())
        same = {*shapes, *outs} == {shapes[0]}
        if not same or states_of(node) or not is_map(node.op, shapes, types, outs):
            return None
        every = frozenset(range(len(outs)))
        return Turned(node.op, frozenset(range(len(shapes))), every)


def _ordered(shape: Shape, axes: Shape) -> Shape:
    return tuple(shape[a] for a in axes)


def _transpose(axes: Shape) -> Any:
    return registry.find("transpose").parse({"axes": axes})


def _pooling(op: Any, count: int) -> Turned | None:
    known = op.layout in (None, "NCHW") and op.pool_type in ("max", "avg")
    if not known:
        return None
    return Turned(type(op).parse({**op.attrs(), "layout": "NHWC"}), frozenset((0,)))


def _normalization(op: Any, count: int) -> Turned | None:
    if op.axis not in CHANNELS:
        return None
    return Turned(type(op).parse({**op.attrs(), "axis": 3}), frozenset((0,)))


def _join(op: Any, count: int) -> Turned | None:
    if op.dim not in CHANNELS:
        return None
    return Turned(type(op).parse({**op.attrs(), "dim": 3}), frozenset(range(count)))


RULES: dict[str, Callable[[Any, int], Turned | None]] = {
    "Pooling": _pooling,
    "BatchNorm": _normalization,
    "Concat": _join,
}
