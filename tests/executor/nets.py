"""Bound graphs on NumPy arrays, without symbols and NDArrays: what programs are tested with."""

import numpy as np

from gnomon import dtype
from gnomon.context import cpu
from gnomon.executor.arena import Arena
from gnomon.executor.programs.draws import Draws
from gnomon.executor.programs.layout import Mode, Network, lay_out
from gnomon.executor.programs.program import Builder, place
from gnomon.expr.node import Buffer
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.ops import registry


def node(name, op_name, *inputs, **params):
    """The first output of a new operator node."""
    return Entry(Node(registry.find(op_name).parse(params), name, inputs))


def leaf(array):
    """A buffer on the memory of an array."""
    assert array.flags.c_contiguous
    return Buffer(array.shape, dtype.of(array.dtype), address=array.ctypes.data, owner=array)


class Bound:
    """A graph on arrays: inputs by name, gradients with savers by name."""

    def __init__(self, outputs, inputs, grads=None, savers="saveto"):
        self.graph = Graph(outputs)
        self.inputs = inputs
        given = {n: inputs[n.name].shape for n in self.graph.variables}
        kinds = {n: dtype.of(inputs[n.name].dtype) for n in self.graph.variables}
        shapes, types = infer.shapes(self.graph, given), infer.types(self.graph, kinds)
        self.outputs = [np.full(shapes[e], np.nan, types[e].numpy) for e in outputs]
        self.heads = {variable(f"head{k}"): np.ones_like(o) for k, o in enumerate(self.outputs)}
        self.grads = grads or {}
        wanted = {
            n: (leaf(self.grads[n.name]), savers)
            for n in self.graph.arguments
            if n.name in self.grads
        }
        self.net = Network(
            self.graph,
            shapes,
            types,
            {n: leaf(inputs[n.name]) for n in self.graph.variables},
            [leaf(o) for o in self.outputs],
            wanted,
            {e: leaf(a) for e, a in self.heads.items()},
        )

    def layout(self, train=True, differentiate=True, fuse=True):
        """The layout for one mode."""
        return lay_out(self.net, Mode(train, differentiate, fuse), Draws(cpu()))

    def run(self, train=True, fuse=True):
        """One forward pass, and one backward pass where gradients are wanted; the layout."""
        layout = self.layout(train, bool(self.grads), fuse)
        arena = Arena(cpu())
        place(layout, arena)
        layout.draws.put(layout.draws.reserve())
        for segment in Builder(layout, arena, self.net.handed).build(slice(None), "all"):
            segment.run()
        return layout
