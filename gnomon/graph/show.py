"""Graphs as text: a line for each node, and the listing that `debug_str` gives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from gnomon import config
from gnomon.graph.node import Entry, Graph, Node, input_versions
from gnomon.graph.tasks.task import Task

T = TypeVar("T")


def told(name: str, before: T, after: T, text: Callable[[T], str]) -> T:
    """What a pass called `name` made of `before`; at DEBUG 6 both are shown where they differ."""
    if after is not before and config.get("debug") >= 6:
        was, now = text(before), text(after)
        if was != now:
            print(f"{name}, before:\n{was}\n{name}, after:\n{now}", file=sys.stderr)
    return after


def show(graph: Graph, shapes: Mapping[Entry, Any] | None = None) -> str:
    """A line for each operator: what it gives, what it reads.

    >>> from gnomon.graph.node import variable
    >>> show(Graph([variable("x")]), {})
    'x = variable'
    """
    return show_nodes(graph.topo, shapes or {})


def show_nodes(nodes: Iterable[Node], shapes: Mapping[Entry, Any]) -> str:
    """A line for each node."""
    return "\n".join(_line(node, shapes) for node in nodes)


def _line(node: Node, shapes: Mapping[Entry, Any]) -> str:
    gives = ", ".join(_entry(e, shapes) for e in node.entries())
    if node.op is None:
        return f"{gives} = variable"
    return f"{gives} = {node.op.name}({', '.join(map(repr, node.inputs))})"


def _entry(entry: Entry, shapes: Mapping[Entry, Any]) -> str:
    shape = shapes.get(entry)
    return repr(entry) if shape is None else f"{entry!r}[{'x'.join(map(str, shape))}]"


def show_tasks(tasks: Sequence[Task]) -> str:
    """A line for each task: its nodes, what it reads and what it makes."""
    return "\n".join(
        f"{k:4} {t.name}: {', '.join(map(repr, t.made))} <- {', '.join(map(repr, t.reads))}"
        for k, t in enumerate(tasks)
    )


def listing(graph: Graph) -> str:
    """The nodes of `graph` with inputs and attributes, in the form of MXNet's `debug_str`."""
    if len(graph.topo) == len(graph.outputs) == 1 and graph.topo[0].op is None:
        return f"Variable:{graph.topo[0].name}\n"
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{k}]={e.node.name}({e.index})" for k, e in enumerate(graph.outputs)]
    versions: dict[Node, int] = {}
    for node in graph.topo:
        if node.op is None:
            lines.append(f"Variable:{node.name}")
        else:
            lines += _operator(node, versions)
    return "\n".join(lines) + "\n"


def _operator(node: Node, versions: dict[Node, int]) -> list[str]:
    counts = input_versions(node, versions)
    lines = ["--------------------", f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
    for k, (entry, count) in enumerate(zip(node.inputs, counts, strict=True)):
        version = f" version={count}" if entry.node.op is None else ""
        lines.append(f"\targ[{k}]={entry.node.name}({entry.index}){version}")
    if node.attrs:
        lines.append("Attrs:")
        lines += [f"\t{key}={value}" for key, value in sorted(node.attrs.items())]
    return lines
