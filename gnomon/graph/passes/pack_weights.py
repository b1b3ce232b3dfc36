"""Packing for prediction: the weights of recurrent layers as their products read them best.

A program keeps them so, and packs them again when the parameters have changed
(`executor/prepared.py`); elsewhere every pass over the layers packs them anew.
"""

from __future__ import annotations

from gnomon.expr import ext
from gnomon.expr.call.rnn import panels
from gnomon.expr.node import Expr
from gnomon.graph.node import Entry, Node
from gnomon.graph.typed_graph import Kept, Rewriter, TypedGraph
from gnomon.ops.nn.rnn import RNN, Place
from gnomon.ops.op import describe
from gnomon.ops.param import param
from gnomon.runtime.libraries import recurrent, tile


class PackedWeights(Kept):
    """A matrix that is a part of the vector of all weights, in panels."""

    name = "_packed_weights"
    input_names = ("parameters",)

    start: int = param(low=0, doc="Where it begins in the vector.")
    rows: int = param(low=1, doc="Its rows.")
    inner: int = param(low=1, doc="Numbers of a row.")
    columns: int = param(low=1, doc="Columns of a panel of its transpose.")

    def forward(self, parameters: Expr) -> Expr:
        end = self.start + self.rows * self.inner
        part = ext.slice_(parameters, (self.start,), (end,))
        return panels(ext.reshape(part, (self.rows, self.inner)), self.columns)


class PackedRNN(RNN):
    """Recurrent layers whose weights come packed, besides; the vector has their biases."""

    name = "_packed_rnn"

    def arguments(self) -> tuple[str, ...]:
        names = [f"{n}{p.number}" for p in self.places(1, 1, 1) for n in p.layer.weights]
        return (*super().arguments(), *names)

    def _weights(self, place: Place, given: dict[str, Expr]) -> dict[str, Expr]:
        packed = {name: given[f"{name}{place.number}"] for name in place.layer.weights}
        return super()._weights(place, given) | packed


describe(PackedWeights)
describe(PackedRNN)


def packed(typed: TypedGraph) -> TypedGraph:
    """`typed` with the weights of recurrent layers packed apart, where that is done at all."""
    rewriter = Rewriter(typed)
    for old in typed.graph.topo:
        if old.op is not None:
            new = _packed(rewriter, old) if _packs(typed, old) else rewriter.reread(old)
            rewriter.put(old.entries(), new.entries())
    return rewriter.done()


def _packs(typed: TypedGraph, node: Node) -> bool:
    """Whether a node is recurrent layers that all read packed weights, of a variable."""
    if type(node.op) is not RNN or node.inputs[1].node.op is not None:
        return False
    dtype = typed.types[node.inputs[0]]
    return all(recurrent.packs_forward(p.layer, dtype) for p in _places(typed, node))


def _places(typed: TypedGraph, node: Node) -> list[Place]:
    places: list[Place] = node.op.places(*typed.shapes[node.inputs[0]])
    return places


def _packed(rewriter: Rewriter, node: Node) -> Node:
    """The same layers, reading packed weights."""
    parameters = node.inputs[1]
    dtype = rewriter.types[parameters]
    columns, made = tile.columns(dtype), list[Entry]()
    for place in _places(rewriter.typed, node):
        for name in place.layer.weights:
            rows, inner = place.shape(name)
            told = {"start": place.starts[name], "rows": rows, "inner": inner, "columns": columns}
            op = PackedWeights.parse(told)
            entry = Entry(Node(op, f"{node.name}_{name}{place.number}", (parameters,)), 0)
            rewriter.shapes[entry] = (-(-rows // columns), inner, columns)
            rewriter.types[entry] = dtype
            made.append(entry)
    inputs = (*map(rewriter.now, node.inputs), *made)
    new = Node(PackedRNN.parse(node.op.attrs()), node.name, inputs, node.attrs)
    return rewriter.made(new, node.entries())
