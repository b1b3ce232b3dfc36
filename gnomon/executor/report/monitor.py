"""Monitored passes: one operator after the other, its values shown as they are made."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gnomon import engine
from gnomon import ndarray as nd
from gnomon.executor.run import Run
from gnomon.graph.gradient import Gradient
from gnomon.graph.node import Entry, Node

Callback = Callable[[str, Any], object]


def forward(run: Run, callback: Callback, everything: bool) -> None:
    """The forward pass of `run`, a layout without fusion."""
    layout = run.layout
    if len(layout.draws):
        layout.draws.put(layout.draws.reserve())
    _walk(run, "forward", callback, everything)


def backward(run: Run, callback: Callback, everything: bool) -> None:
    """The backward pass of `run`; the gradients of outputs that it reads come first.

    Their names are those of MXNet's copies of them.
    """
    ends = ("", "_id_lhs", "_id_rhs", "_id_output") if everything else ("_id_output",)
    for number, head in enumerate(run.heads):
        if head in run.layout.heads:
            _tell(run, callback, [(f"_head_grad_{number}{end}", head) for end in ends])
    _walk(run, "backward", callback, everything)


def _walk(run: Run, name: str, callback: Callback, everything: bool) -> None:
    tasks = run.layout.tasks[run.parts[name]]
    current, told = engine.get(), set[Node]()
    steps = zip(tasks, run.operators(name, apart=True), strict=True)
    for node, group in itertools.groupby(steps, lambda step: step[0].nodes[0]):
        if everything and node not in told:
            told.add(node)
            _tell(run, callback, _inputs(run, node))
        made: list[Entry] = []
        for task, operator in group:
            current.push(operator, run.arena.ctx)
            made += task.made
        current.wait_for_var(run.arena.var)
        made.sort(key=lambda entry: entry.index)
        _tell(run, callback, [(output_name(e), e) for e in made])


def _inputs(run: Run, node: Node) -> Iterator[tuple[str, Entry]]:
    """Names of an operator's inputs, with the values: a variable by its own name too.

    A gradient's are numbered: what it reads has names of its operator's outputs.
    """
    if node.op is None:
        return
    numbered = isinstance(node.op, Gradient)
    names = [f"input{k}" for k in range(len(node.inputs))] if numbered else node.op.inputs()
    for name, entry in zip(names, node.inputs, strict=True):
        if entry.node.op is None and entry not in run.layout.heads:
            yield entry.node.name, entry
        yield f"{node.name}_{name}", entry


def _tell(run: Run, callback: Callback, values: Iterable[tuple[str, Entry]]) -> None:
    for name, entry in values:
        if name and run.layout.buffers[entry].address:  # what is not read is not computed
            held = run.layout.buffers[entry].numpy().copy()
            callback(name, nd.array(held, ctx=run.arena.ctx))


def output_name(entry: Entry) -> str:
    """The name of a value: `fc1_output`; none for values between an operator's own steps."""
    node = entry.node
    return "" if node.op is None else f"{node.name}_{node.op.outputs()[entry.index]}"
