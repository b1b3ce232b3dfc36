"""Monitored passes: one operator after the other, its values shown as they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gnomon import engine
from gnomon import ndarray as nd
from gnomon.executor.run import Run
from gnomon.graph.node import Entry
from gnomon.graph.task import Task

Callback = Callable[[str, Any], object]


def forward(run: Run, callback: Callback, everything: bool) -> None:
    """The forward pass of `run`, a layout without fusion."""
    layout = run.layout
    if len(layout.draws):
        layout.draws.put(layout.draws.reserve())
    _walk(run, "forward", callback, everything)


def backward(run: Run, callback: Callback, everything: bool) -> None:
    """The backward pass of `run`."""
    _walk(run, "backward", callback, everything)


def _walk(run: Run, name: str, callback: Callback, everything: bool) -> None:
    tasks = run.layout.tasks[run.parts[name]]
    current = engine.get()
    for task, operator in zip(tasks, run.operators(name, apart=True), strict=True):
        if everything:
            current.wait_for_var(run.arena.var)
            _tell(run, callback, [(input_name(task, e), e) for e in task.reads])
        current.push(operator, run.arena.ctx)
        current.wait_for_var(run.arena.var)
        _tell(run, callback, [(output_name(e), e) for e in task.made])


def _tell(run: Run, callback: Callback, values: Sequence[tuple[str, Entry]]) -> None:
    for name, entry in values:
        if name:
            callback(name, nd.array(run.layout.buffers[entry].numpy().copy()))


def output_name(entry: Entry) -> str:
    """The name of a value: `fc1_output`; none for values between an operator's own steps."""
    node = entry.node
    return "" if node.op is None else f"{node.name}_{node.op.outputs()[entry.index]}"


def input_name(task: Task, entry: Entry) -> str:
    """The name of a value as an operator's input: `fc1_data`."""
    node = task.nodes[0]
    if node.op is None or entry not in node.inputs:
        return ""
    return f"{node.name}_{node.op.inputs()[node.inputs.index(entry)]}"
