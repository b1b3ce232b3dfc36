"""Where nodes run: `ctx_group` attributes and `group2ctx` say a context for each node.

A value that is read on another context than it is made on goes through a copy, one for each context
that reads it. Processors share their memory: a copy between two of them is a view, which moves
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from gnomon.base import DeviceError, complaint
from gnomon.context import Context
from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ops.op import Op, describe

GROUP = "__ctx_group__"
COMPUTES = ("cpu", "cpu_pinned", "cpu_shared")

Places = Mapping[Node, Context]


class CrossDeviceCopy(Op):
    """The value itself, on another context.

    No operator of the users: what placement puts between contexts.
    """

    name = "_CrossDeviceCopy"

    def forward(self, data: Expr) -> Expr:
        return fn.identity(data)


describe(CrossDeviceCopy)


def place(
    graph: Graph,
    default: Context,
    groups: Mapping[str, Context],
    given: Places | None = None,
) -> dict[Node, Context]:
    """The context of each node: the one `given`, else its group's, else that of the first of its
    inputs that has one, else of a reader; and `default` where there is no such.

    Raises:
        DeviceError: a context that gnomon does not compute on; it names the node.
    """
    if not groups:
        return {n: _checked(n, default) for n in graph.topo}
    placed: dict[Node, Context] = {}
    for node in graph.topo:
        context = (given or {}).get(node) or groups.get(node.attrs.get(GROUP, ""))
        if context is None:
            context = next((placed[e.node] for e in node.inputs if e.node in placed), None)
        if context is not None:
            placed[node] = _checked(node, context)
    for node in reversed(graph.topo):
        for entry in node.inputs if node in placed else ():
            placed.setdefault(entry.node, placed[node])
    return {n: placed[n] if n in placed else _checked(n, default) for n in graph.topo}


def _checked(node: Node, context: Context) -> Context:
    if context.device_type not in COMPUTES:
        expected = f"one of {', '.join(COMPUTES)}"
        raise DeviceError(complaint(f"node {node.name!r}", "ctx", expected, context))
    return context


def with_copies(graph: Graph, placed: Places) -> Graph:
    """`graph` with a copy wherever a node reads what is on another context."""
    if len({placed[n] for n in graph.topo}) < 2:
        return graph
    new: dict[Node, Node] = {}
    copies: dict[tuple[Entry, Context], Entry] = {}

    def there(entry: Entry, context: Context) -> Entry:
        moved = Entry(new[entry.node], entry.index)
        if placed[entry.node] == context:
            return moved
        if (entry, context) not in copies:
            name = f"{entry.node.name}_{entry.index}_copy"
            copies[entry, context] = Entry(Node(CrossDeviceCopy(), name, (moved,)), 0)
        return copies[entry, context]

    for node in graph.topo:
        new[node] = node
        if node.op is not None:
            states = len(node.inputs) - len(node.op.auxiliary())
            inputs = [there(e, placed[node]) for e in node.inputs[:states]]
            inputs += [Entry(new[e.node], e.index) for e in node.inputs[states:]]
            if tuple(inputs) != node.inputs:
                new[node] = Node(node.op, node.name, inputs, node.attrs)
    return Graph(Entry(new[e.node], e.index) for e in graph.outputs)
