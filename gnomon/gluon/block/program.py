"""Programs of compiled blocks: an executor, who has it for now, and how gradients leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon import autograd
from gnomon import ndarray as nd
from gnomon.context import Context
from gnomon.executor import Executor
from gnomon.graph.node import Entry, Graph
from gnomon.ndarray.mode import mode
from gnomon.ndarray.tape import Leaf, Node


class Program:
    """An executor on parameters, and the arrays of its inputs."""

    def __init__(self, executor: Executor, feeds: Sequence[Any]) -> None:
        self.executor = executor
        self._feeds = feeds

    def forward(self, given: Sequence[Any], train: bool) -> list[Any]:
        """The outputs, as arrays of their own."""
        feeds = [(d, x._detached()) for d, x in zip(self._feeds, given, strict=True)]
        with autograd.pause(train_mode=train):
            self.executor.forward_on(feeds, train)
            return [x.copy() for x in self.executor.outputs]


class Lease:
    """Who holds a recorded call's program; when the lease goes, the program is free again."""

    __slots__ = ("graph", "home", "program", "table")

    def __init__(
        self, program: Program, home: list[Program], graph: Graph, table: Mapping[str, Any]
    ) -> None:
        self.program, self.home, self.graph, self.table = program, home, graph, table

    def __del__(self) -> None:
        self.home.append(self.program)


def gradients(
    node: Node, heads: Sequence[Any], dests: Sequence[Any], create: bool
) -> Sequence[Any]:
    """The gradients of a compiled block's arguments, stored where `dests` says.

    With `create`, they are computed once more, by operators that go on the tape.
    """
    (lease,) = node.saved or ()
    if create:
        return _recorded(node, lease, heads)
    executor = lease.program.executor
    kept = _kept(node, executor, dests)
    with autograd.pause():
        executor.backward(list(heads))
        return _delivered(node, executor, dests, kept)


def _kept(node: Node, executor: Executor, dests: Sequence[Any]) -> dict[int, Any]:
    """What stands in gradients of parameters that are to go elsewhere, by argument."""
    kept = {}
    for k, (place, grad) in enumerate(zip(node.inputs, executor.grad_arrays, strict=True)):
        if isinstance(place, Leaf) and place.grad is grad and dests[k] is None:
            kept[k] = grad.copy()
            if place.req == "add":
                grad[:] = 0
    return kept


def _delivered(
    node: Node, executor: Executor, dests: Sequence[Any], kept: Mapping[int, Any]
) -> list[Any]:
    """The gradient of each argument, after the backward pass."""
    found: list[Any] = [None] * len(node.inputs)
    for k, grad in enumerate(executor.grad_arrays):
        if grad is None:
            continue
        if dests[k] is None:
            found[k] = grad.copy()
            if k in kept:
                grad[:] = kept[k]
        else:
            array, saver = found[k], _ = dests[k]
            if array is grad:
                continue
            if saver == "plusto":
                array += grad
            else:
                array[:] = grad
    return found


def _recorded(node: Node, lease: Lease, heads: Sequence[Any]) -> list[Any]:
    """Gradients that can be differentiated again."""
    before = mode.recording
    mode.recording = True
    try:
        graph, table = lease.graph, lease.table
        names = [n.name for n in graph.arguments]
        outputs = applied(graph, table, heads[0].context)
        wanted = [k for k, place in enumerate(node.inputs) if place is not None]
        reached = [(x, h) for x, h in zip(outputs, heads, strict=True) if x._tape is not None]
        arrays = [table[names[k]] for k in wanted]
        values = autograd.grad(
            [x for x, _ in reached], arrays, [h for _, h in reached], create_graph=True
        )
    finally:
        mode.recording = before
    found: list[Any] = [None] * len(node.inputs)
    for k, value in zip(wanted, values, strict=True):
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
