"""recorded: the network that the tape holds of an array, as a symbol.

A variable with a gradient is called `var<n>` by its number among all, an operator `node_<n>` by its
number on the tape, and what came from outside of the tape `null<n>_<k>`: argument k of operator n.
The same variable has the same name in every symbol, as the same operator has.
"""

from __future__ import annotations

from gnomon.base import GnomonError
from gnomon.graph.node import Entry, Node
from gnomon.ndarray.backward import opened, reachable
from gnomon.ndarray.core import tape
from gnomon.ndarray.lazy.forwarded import behind
from gnomon.ops.op import Op
from gnomon.symbol.symbol import Symbol


def recorded(place: tape.Place) -> Symbol:
    """The symbol of what was recorded up to `place`.

    Raises:
        GnomonError: on the way stands what no symbol says.
    """
    variables: dict[tape.Leaf, Node] = {}
    made: dict[tape.Node, Node] = {}

    def entry(place: tape.Place | None, name: str) -> Entry:
        if isinstance(place, tape.Output):
            return Entry(made[place.node], place.index)
        if place is None:
            return Entry(Node(None, name))
        if place not in variables:
            variables[place] = Node(None, f"var{place.number}")
        return Entry(variables[place])

    opened([place])
    start = behind(place)
    for node, before in reversed(reachable([start]).items()):
        op = _operator(node)
        places = [*before, *[None] * len(op.auxiliary())]
        inputs = [entry(p, f"null{node.number}_{k}") for k, p in enumerate(places)]
        made[node] = Node(op, f"node_{node.number}", inputs, op.attrs())
    return Symbol([entry(start, "")])


def _operator(node: tape.Node) -> Op:
    """The operator that was recorded."""
    if isinstance(node.gradient, tape.Call):
        raise GnomonError(
            "get_symbol: the array depends on an autograd.Function or on a product with a sparse "
            "array, whose gradient is a Python function: no symbol says it"
        )
    if node.gradient is None:
        raise GnomonError(
            "get_symbol: the array was computed with its gradients, and the tape was followed; ask "
            "for its symbol before backward, or use retain_graph=True"
        )
    op = node.gradient.op
    if not isinstance(op, Op):
        raise GnomonError(
            f"get_symbol: the array depends on a gradient that was itself recorded ({op.name}, by "
            "create_graph=True): no symbol says it"
        )
    return op
