"""Strips the casts of mixed precision from graphs, since files do not keep them."""

from __future__ import annotations

from gnomon.graph.node import Entry, Graph, Node

CASTS = ("amp_cast", "amp_multicast")


def without_casts(graph: Graph) -> Graph:
    """`graph` in which readers of a cast read what was cast; the same one if there is none.

    Outputs stay, casts too: their names are what others know them by.
    """
    if not any(n.op is not None and n.op.name in CASTS for n in graph.topo):
        return graph
    new: dict[Node, Node] = {}

    def moved(entry: Entry) -> Entry:
        while entry.node.op is not None and entry.node.op.name in CASTS:
            entry = entry.node.inputs[entry.index]
        return Entry(new[entry.node], entry.index)

    for node in graph.topo:
        new[node] = Node(node.op, node.name, (), node.attrs)
        new[node].inputs = tuple(map(moved, node.inputs))
    return Graph(Entry(new[e.node], e.index) for e in graph.outputs)
