"""Where nodes run: `ctx_group` attributes and `group2ctx` say a context for each node.

Every processor context is the same memory, so an edge between two of them needs no copy; an edge
between kinds of devices is listed by `crossings`, for the pass that will insert copies.
"""

from __future__ import annotations

from collections.abc import Mapping

from gnomon.base import DeviceError, complaint
from gnomon.context import Context
from gnomon.graph.node import Entry, Graph, Node

GROUP = "__ctx_group__"
COMPUTES = ("cpu", "cpu_pinned", "cpu_shared")


def place(graph: Graph, default: Context, groups: Mapping[str, Context]) -> dict[Node, Context]:
    """The context of each node: its group's, else that of what it reads, else `default`.

    Raises:
        DeviceError: a context that gnomon does not compute on; it names the node.
    """
    placed: dict[Node, Context] = {}
    for node in graph.topo:
        context = groups.get(node.attrs.get(GROUP, ""))
        if context is None:
            grouped = (placed[e.node] for e in node.inputs if GROUP in e.node.attrs)
            context = next(grouped, default)
        if context.device_type not in COMPUTES:
            expected = f"one of {', '.join(COMPUTES)}"
            raise DeviceError(complaint(f"node {node.name!r}", "ctx", expected, context))
        placed[node] = context
    return placed


def crossings(graph: Graph, placed: Mapping[Node, Context]) -> list[tuple[Entry, Node]]:
    """Edges whose ends are on different kinds of devices: (what is read, its reader)."""
    return [
        (entry, node)
        for node in graph.topo
        for entry in node.inputs
        if _kind(placed[entry.node]) != _kind(placed[node])
    ]


def _kind(context: Context) -> str:
    return "cpu" if context.device_type in COMPUTES else repr(context)
