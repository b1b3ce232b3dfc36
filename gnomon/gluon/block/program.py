"""Programs of compiled blocks: who has one for now, and how gradients leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon import autograd
from gnomon import ndarray as nd
from gnomon.context import Context
from gnomon.executor.passes import Passes
from gnomon.graph.gradient import Flow
from gnomon.graph.node import Entry, Graph
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.core.tape import Leaf, Node


class Program:
    """The passes of a bound block, the layouts of its outputs, and which arguments are inputs.

    `flow` is that of gradients to its parameters as one bundle, then to its inputs.
    """

    __slots__ = ("flow", "inputs", "layouts", "passes")

    def __init__(
        self, passes: Passes, layouts: Sequence[Layout], inputs: Sequence[int], flow: Flow
    ) -> None:
        self.passes, self.layouts, self.inputs, self.flow = passes, layouts, inputs, flow


class Lease:
    """Who holds a recorded call's program; when the lease goes, the program is free again."""

    __slots__ = ("given", "program", "site")

    def __init__(self, program: Program, site: Any, given: Sequence[Any]) -> None:
        self.program, self.site, self.given = program, site, given

    def __del__(self) -> None:
        if hasattr(self, "given"):  # or an interrupt came before it was there
            self.site.give_back(self.program)


def gradients(
    node: Node, heads: Sequence[Any], dests: Sequence[Any], create: bool
) -> Sequence[Any]:
    """The gradients of a compiled block's parameters, as a bundle, and of its inputs.

    With `create`, they are computed once more, by operators that go on the tape.
    """
    (lease,) = node.saved or ()
    if create:
        return _recorded(node, lease, heads)
    program, bundle = lease.program, node.inputs[0]
    passes, ctx = program.passes, node.outputs[0][1]
    leaves = [] if bundle is None or dests[0] is not None else bundle.leaves
    kept = [leaf.grad.copy() for leaf in leaves]
    for leaf in leaves:
        if leaf.req == "add":
            leaf.grad[:] = 0
    found: list[Any] = [None] * len(node.inputs)
    gifts = []
    for k, number in enumerate(program.inputs, 1):
        grad = passes.grad_arrays[number]
        if grad is not None:
            own = dests[k] is not None and dests[k][1] == "saveto"
            found[k] = dests[k][0] if own else Array._new(dense(grad.shape, grad._dtype), ctx)
            gifts.append((grad, found[k]))
    passes.backward_into(heads, gifts)
    for k, dest in enumerate(dests):
        if k and dest is not None and dest[1] != "saveto" and found[k] is not None:
            dest[0][:] = dest[0] + found[k]
    if bundle is not None:
        found[0] = bundle if dests[0] is not None else _taken(leaves, kept)
    return found


def _taken(leaves: Sequence[Leaf], kept: Sequence[Any]) -> list[Any]:
    """The gradients of leaves, which get back what stood there before."""
    found = [leaf.grad.copy() for leaf in leaves]
    for leaf, before in zip(leaves, kept, strict=True):
        leaf.grad[:] = before
    return found


def _recorded(node: Node, lease: Lease, heads: Sequence[Any]) -> list[Any]:
    """Gradients that can be differentiated again."""
    table, bundle, symbol = lease.site.named(lease.given), node.inputs[0], lease.site.symbol
    outputs = applied(symbol._graph, table, heads[0].context)
    reached = [(x, h) for x, h in zip(outputs, heads, strict=True) if x._tape is not None]
    names = list(lease.site.leaves) if bundle is not None else []
    wanted = [k for k, place in enumerate(node.inputs) if k and place is not None]
    arrays = [table[n] for n in names] + [lease.given[k - 1] for k in wanted]
    values = autograd.grad(
        [x for x, _ in reached], arrays, [h for _, h in reached], create_graph=True
    )
    found: list[Any] = [None] * len(node.inputs)
    if bundle is not None:
        found[0] = values[: len(names)]
    for k, value in zip(wanted, values[len(names) :], strict=True):
        found[k] = value
    return found


def applied(graph: Graph, table: Mapping[str, Any], ctx: Context) -> list[Any]:
    """The outputs of a graph on arrays by name, one operator after the other."""
    values = {Entry(node, 0): table[node.name] for node in graph.variables}
    for node in graph.topo:
        if node.op is None:
            continue
        given = [values[e] for e in node.inputs]
        found = nd.invoke(node.op, given, None, ctx)
        outputs = found if isinstance(found, (list, tuple)) else [found]
        values.update(zip(node.visible(), outputs, strict=True))
    return [values[e] for e in graph.outputs]
