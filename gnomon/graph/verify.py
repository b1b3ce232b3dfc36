"""What a graph must satisfy, as a table of rules; passes are checked against it in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gnomon.base import DTypeError, GnomonError, ShapeError, nearest
from gnomon.dtype import DType
from gnomon.graph.infer import complete
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ops.infer import show_shape

Rule = Callable[[Node], Iterator[str]]


def _variable_reads_nothing(node: Node) -> Iterator[str]:
    if node.op is None and node.inputs:
        yield f"a variable reads {len(node.inputs)} entries"


def _inputs_are_complete(node: Node) -> Iterator[str]:
    if node.op is not None and len(node.inputs) != len(node.op.inputs()):
        expected = f"{len(node.op.inputs())} inputs ({', '.join(node.op.inputs())})"
        yield f"{node.op.name} takes {expected}, got {len(node.inputs)}"


def _entries_exist(node: Node) -> Iterator[str]:
    for entry in node.inputs:
        if not 0 <= entry.index < entry.node.num_outputs:
            yield f"reads {entry!r}, but {entry.node!r} has {entry.node.num_outputs} outputs"


def _has_a_name(node: Node) -> Iterator[str]:
    if not isinstance(node.name, str) or not node.name:
        yield f"its name is {node.name!r}"


def _attributes_are_strings(node: Node) -> Iterator[str]:
    for key, value in node.attrs.items():
        if type(value) is not str:
            yield f"attribute {key!r} is {value!r}, not a string"


RULES: tuple[Rule, ...] = (
    _variable_reads_nothing,
    _inputs_are_complete,
    _entries_exist,
    _has_a_name,
    _attributes_are_strings,
)


def problems(graph: Graph) -> list[str]:
    """Every way in which `graph` breaks a rule, with the node's name.

    >>> problems(Graph([Entry(Node(None, ""))]))
    ["node '': its name is ''"]
    """
    found = [f"node {n.name!r}: {text}" for n in graph.topo for r in RULES for text in r(n)]
    bad = [e for e in graph.outputs if not 0 <= e.index < e.node.num_outputs]
    return found + [f"head {e!r}: no such output of {e.node!r}" for e in bad]


def check(graph: Graph) -> Graph:
    """`graph` itself; GnomonError listing what is wrong with it."""
    found = problems(graph)
    if found:
        raise GnomonError("bad graph: " + "; ".join(found))
    return graph


def check_complete(
    graph: Graph,
    shapes: Mapping[Entry, Any],
    types: Mapping[Entry, DType | None],
    where: str,
    by_values: bool = False,
    given: Iterable[str] = (),
) -> None:
    """ShapeError or DTypeError naming the variables whose shape or dtype is not known."""
    check_shapes(graph, shapes, where, by_values, given)
    lacking = _lacking(graph.entries, types)
    if lacking:
        raise DTypeError(f"{where}: the dtype of these is not known, give some: {lacking}")


def check_shapes(
    graph: Graph,
    shapes: Mapping[Entry, Any],
    where: str,
    by_values: bool = False,
    given: Iterable[str] = (),
) -> None:
    """ShapeError naming the variables whose shape is not known, and what else shapes are given of.

    `by_values` says that shapes of results may depend on values: then variables alone are asked.
    """
    asked = [Entry(n, 0) for n in graph.variables] if by_values else graph.entries
    lacking = _lacking(asked, shapes)
    if lacking:
        names = {n.name for n in graph.variables}
        others = [f"; no input is called {n!r}{nearest(n, names)}" for n in given if n not in names]
        text = f"{where}: the shape of these is not known, give some: {lacking}"
        raise ShapeError(text + "".join(others))


def _lacking(entries: Iterable[Entry], known: Mapping[Entry, Any]) -> str:
    """The variables of `entries` of which something is not known, else the other nodes."""
    lacking = [e.node for e in entries if not _known(known.get(e))]
    inputs = [n for n in lacking if n.op is None] or lacking
    return ", ".join(f"{n.name} ({_shown(known.get(Entry(n, 0)))})" for n in inputs[:10])


def _shown(value: Any) -> Any:
    return show_shape(value) if isinstance(value, tuple) else value


def _known(value: Any) -> bool:
    return complete(value) if isinstance(value, tuple) else value is not None
