"""Common-subexpression elimination: equal operators of equal inputs are computed once."""

from __future__ import annotations

from collections.abc import Hashable

from gnomon.graph.node import Node
from gnomon.graph.place import CONTEXT
from gnomon.graph.typed_graph import Rewriter, TypedGraph, is_pure

APART = (CONTEXT, "__force_mirroring__", "force_mirroring")  # what tells nodes apart


def cse(typed: TypedGraph) -> TypedGraph:
    """`typed` with one node for all that are pure and equal."""
    rewriter = Rewriter(typed)
    first: dict[Hashable, Node] = {}
    for old in typed.graph.topo:
        if old.op is None:
            continue
        node = rewriter.reread(old)
        if is_pure(node):
            wishes = tuple(node.attrs.get(name) for name in APART)
            node = first.setdefault((node.op, node.inputs, wishes), node)
        rewriter.put(old.entries(), node.entries())
    return rewriter.done()
