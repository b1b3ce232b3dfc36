"""Where nodes run: `ctx_group` attributes and `group2ctx` say a context for each node.

A value that is read on another context than it is made on goes through a copy, one for each context
that reads it. Processors share their memory: a copy between two of them is a view, which moves
nothing. What follows from a graph on several contexts knows them by the attribute `CONTEXT`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gnomon.context import Context
from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ops.op import Op, describe

GROUP = "__ctx_group__"
CONTEXT = "__ctx__"  # of an operator's node in a graph on several contexts: such as "cpu(1)"

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
    """
    if not groups:
        return dict.fromkeys(graph.topo, default)

    def said(node: Node) -> Context | None:
        return (given or {}).get(node) or groups.get(node.attrs.get(GROUP, ""))

    placed = _spread(graph.topo, said)
    return {n: placed.get(n, default) for n in graph.topo}


def contexts(order: Sequence[Node]) -> Mapping[Node, Context]:
    """The contexts of nodes made from a graph on several ones; empty where there is but one."""
    said = {n: context_of(n.attrs[CONTEXT]) for n in order if CONTEXT in n.attrs}
    return _spread(order, said.get) if said else {}


def context_of(text: str) -> Context:
    """The context that a text names.

    >>> context_of("cpu(1)")
    cpu(1)
    """
    kind, _, number = text.rstrip(")").partition("(")
    return Context(kind, int(number))


def _spread(order: Sequence[Node], said: Callable[[Node], Context | None]) -> dict[Node, Context]:
    """What is `said` of nodes, and what follows for their readers, then for what they read."""
    placed: dict[Node, Context] = {}
    for node in order:
        context = said(node)
        if context is None:
            context = next((placed[e.node] for e in node.inputs if e.node in placed), None)
        if context is not None:
            placed[node] = context
    for node in reversed(order):
        for entry in node.inputs if node in placed else ():
            placed.setdefault(entry.node, placed[node])
    return placed


def with_copies(graph: Graph, placed: Places) -> Graph:
    """`graph` with a copy wherever a node reads what is on another context; nodes tell theirs."""
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
            attrs = {CONTEXT: str(context)}
            copies[entry, context] = Entry(Node(CrossDeviceCopy(), name, (moved,), attrs), 0)
        return copies[entry, context]

    for node in graph.topo:
        new[node] = node
        if node.op is not None:
            states = len(node.inputs) - len(node.op.auxiliary())
            inputs = [there(e, placed[node]) for e in node.inputs[:states]]
            inputs += [Entry(new[e.node], e.index) for e in node.inputs[states:]]
            attrs = {**node.attrs, CONTEXT: str(placed[node])}
            new[node] = Node(node.op, node.name, inputs, attrs)
    return Graph(Entry(new[e.node], e.index) for e in graph.outputs)
