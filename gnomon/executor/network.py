"""The network of an executor: its symbol's graph with the caller's arrays as buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from gnomon.context import Context
from gnomon.dtype import DType
from gnomon.engine import Var
from gnomon.executor import arrays
from gnomon.executor.programs.layout import Network
from gnomon.expr.node import Buffer
from gnomon.graph import infer, verify
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.place import Places, with_copies
from gnomon.graph.show import show, told
from gnomon.ops.host import HostOp
from gnomon.runtime.devices.device import find

SAVERS = {"write": "saveto", "add": "plusto"}


Known = tuple[Mapping[Entry, tuple[int, ...]], Mapping[Entry, DType]]


class Bound(NamedTuple):
    """The arrays of an executor, in the order of the symbol's lists, and requests."""

    args: list[Any]
    grads: list[Any]
    aux: list[Any]
    requests: list[str]


def contexts_of(graph: Graph, bound: Bound) -> dict[Node, Context]:
    """Where the arrays are that stand for variables."""
    args = zip(graph.arguments, bound.args, strict=True)
    aux = zip(graph.auxiliary, bound.aux, strict=True)
    return {n: array.context for n, array in (*args, *aux)}


def inferred(graph: Graph, tables: Sequence[tuple[Node, Any]], stepwise: bool = False) -> Known:
    """Every shape and dtype, from those of the arrays.

    `stepwise` says that operators are to be applied one by one: values may decide shapes, then.
    """
    shapes: Any = infer.shapes(graph, {n: a.shape for n, a in tables})
    types: Any = infer.types(graph, {n: arrays.dtype_of(a) for n, a in tables})
    by_values = stepwise and infer.by_values(graph, shapes)
    verify.check_complete(graph, shapes, types, "bind", by_values)
    return shapes, types


def shaped_by_values(graph: Graph, tables: Mapping[str, Any]) -> bool:
    """Whether values decide a shape of the graph on these arrays by name: it has no program."""
    if not any(isinstance(node.op, HostOp) for node in graph.topo):
        return False
    known = infer.shapes(graph, {n: tables[n.name].shape for n in graph.variables})
    return infer.by_values(graph, known)


def with_own_operators(graph: Graph) -> Graph:
    """`graph` where no two nodes on data share an operator: what they hand on is kept by it."""
    shared = [n.op for n in graph.topo if n.op is not None and not n.op.is_expression]
    known = set(map(id, shared))
    if len(known) == len(shared):
        return graph
    new: dict[Node, Node] = {}
    for node in graph.topo:
        new[node] = node
        if node.op is not None:
            inputs = [Entry(new[e.node], e.index) for e in node.inputs]
            first = node.op.is_expression or id(node.op) in known
            known.discard(id(node.op))
            new[node] = Node(node.op if first else copy(node.op), node.name, inputs, node.attrs)
    return Graph(Entry(new[e.node], e.index) for e in graph.outputs)


def network(
    graph: Graph,
    placed: Places,
    bound: Bound,
    known: Known | None,
    given_outputs: Sequence[Any],
    losses: int | None,
) -> tuple[Network, list[Any], dict[int, Var]]:
    """The bound graph with its copies, its output arrays, and the variables of arrays by buffer.

    Outputs that are not given are new arrays. Where `losses` is a number, the first so many outputs
    are those that gradients flow from, which need no arrays.

    Raises:
        ShapeError, DTypeError: arrays that do not go together.
    """
    contexts = [placed[e.node] for e in graph.outputs]
    given, graph = graph, told("placement", graph, with_copies(graph, placed), show)
    graph = told("own operators", graph, with_own_operators(graph), show)
    tables = [
        *zip(graph.arguments, bound.args, strict=True),
        *zip(graph.auxiliary, bound.aux, strict=True),
    ]
    if known is None or graph is not given:
        known = inferred(graph, tables)
    shapes, types = known
    variables: dict[int, Var] = {}

    def leaf(array: Any) -> Buffer:
        found = arrays.buffer(array)
        variables[id(found)] = arrays.var(array)
        return found

    rows = zip(graph.outputs, contexts, given_outputs or [None] * len(contexts), strict=True)
    outputs = [
        arrays.zeros(shapes[e], ctx, types[e]) if array is None and k >= (losses or 0) else array
        for k, (e, ctx, array) in enumerate(rows)
    ]
    grads = {}
    wanted = zip(graph.arguments, bound.args, bound.grads, bound.requests, strict=True)
    for node, array, grad, request in wanted:
        if request != "null":
            arrays.check("bind", f"args_grad[{node.name}]", array, grad)
            arrays.check_context("bind", f"args_grad[{node.name}]", array.context, grad)
            grads[node] = leaf(grad), SAVERS[request]
    heads = {
        variable(f"{e.node.name}_head_gradient"): Buffer(shapes[e], types[e], device=find(ctx).name)
        for e, ctx in zip(graph.outputs[:losses], contexts, strict=False)
    }
    inputs = {n: leaf(a) for n, a in tables}
    places = [None if o is None else leaf(o) for o in outputs]
    net = Network(graph, shapes, types, inputs, places, grads, heads)
    return net, outputs, variables
