"""Common-subexpression elimination: equal operators of equal inputs are computed once."""

from __future__ import annotations

from collections.abc import Hashable

from gnomon.graph.gradient import flow_of
from gnomon.graph.node import Node
from gnomon.graph.place import CONTEXT
from gnomon.graph.typed_graph import Purpose, Rewriter, TypedGraph, is_pure

APART = (CONTEXT, "__force_mirroring__", "force_mirroring")  # what tells nodes apart


def cse(typed: TypedGraph, purpose: Purpose) -> TypedGraph:
    """`typed` with one node for all that are pure and equal, and losses as they are."""
    rewriter = Rewriter(typed)
    first: dict[Hashable, Node] = {}
    for old in typed.graph.topo:
        if old.op is None:
            continue
        node = rewriter.reread(old)
        if is_pure(node):
            wishes = tuple(node.attrs.get(name) for name in APART)
            key = node.op, node.inputs, wishes
            counts = purpose.differentiate and node.inputs  # what reads nothing is no loss
            if key in first and not (counts and _is_loss(old, typed, purpose)):
                node = first[key]
            first[key] = node
        rewriter.put(old.entries(), node.entries())
    return rewriter.done()


def _is_loss(node: Node, typed: TypedGraph, purpose: Purpose) -> bool:
    """Whether the gradient of an operator reads none of its outputs': each of several counts."""
    shapes = tuple(typed.shapes[e] for e in node.inputs)
    types = tuple(typed.types[e] for e in node.inputs)
    flow = flow_of(node.op, shapes, types, (True,) * len(shapes), purpose.train)
    return True in flow.gives and not flow.reads.out_grads
