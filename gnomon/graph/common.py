"""Common subexpressions: operators that compute the same of the same are computed once."""

from __future__ import annotations

from collections.abc import Hashable

from gnomon.graph.laid import Laid, Rewriter, is_pure
from gnomon.graph.node import Node
from gnomon.graph.place import CONTEXT

APART = (CONTEXT, "__force_mirroring__", "force_mirroring")  # what tells nodes apart


def common(laid: Laid) -> Laid:
    """`laid` with one node for all that are pure and equal."""
    rewriter = Rewriter(laid)
    first: dict[Hashable, Node] = {}
    for old in laid.graph.topo:
        if old.op is None:
            continue
        node = rewriter.reread(old)
        if is_pure(node):
            wishes = tuple(node.attrs.get(name) for name in APART)
            node = first.setdefault((node.op, node.inputs, wishes), node)
        rewriter.put(old.entries(), node.entries())
    return rewriter.done()
