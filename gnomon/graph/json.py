"""Graphs as MXNet's JSON: every version from 0.5 to 1.9 is read, 1.9.1's text is written.

The layout of the text (what stands on one line, blanks at line ends) is that of MXNet, so that
files compare equal byte for byte.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon.base import FormatError, GnomonError, Later
from gnomon.graph import legacy
from gnomon.graph.body import Body
from gnomon.graph.node import Entry, Graph, Node, input_versions
from gnomon.ops import registry

if TYPE_CHECKING:
    import json
else:
    json = Later("json")

VERSION = 10901
ONE_LINE = 10  # sequences of up to so many members stand on one line


def dumps(graph: Graph) -> str:
    """The text that MXNet 1.9.1 writes for `graph`.

    >>> from gnomon.graph.node import variable
    >>> print(dumps(Graph([variable("x")])))
    {
      "nodes": [
        {
          "op": "null",...
          "name": "x",...
          "inputs": []
        }
      ],...
      "arg_nodes": [0],...
      "node_row_ptr": [0, 1],...
      "heads": [[0, 0, 0]],...
      "attrs": {"mxnet_version": ["int", 10901]}
    }
    """
    attrs = f'{{"mxnet_version": ["int", {VERSION}]}}'
    return _object({**_parts(graph), "attrs": attrs})


def _object(parts: Mapping[str, str]) -> str:
    return "{\n" + ", \n".join(f'  "{key}": {text}' for key, text in parts.items()) + "\n}"


def _parts(graph: Graph) -> dict[str, str]:
    """What files hold of a graph, as texts."""
    number = {node: k for k, node in enumerate(graph.topo)}
    versions: dict[Node, int] = {}
    nodes = [_node_text(node, number, versions) for node in graph.topo]
    rows = [0]
    for node in graph.topo:
        rows.append(rows[-1] + counted_outputs(node))
    heads = [[number[e.node], e.index, versions.get(e.node, 0)] for e in graph.outputs]
    return {
        "nodes": "[\n    " + ", \n    ".join(nodes) + "\n  ]" if nodes else "[]",
        "arg_nodes": _sequence([number[n] for n in graph.variables], 2),
        "node_row_ptr": _sequence(rows, 2),
        "heads": _sequence(heads, 2),
    }


def _subgraphs(node: Node) -> str:
    """The bodies of an operator of control flow, as a text."""
    bodies = getattr(node.op, "subgraphs", ())
    texts = [_object(_parts(body)).replace("\n", "\n        ") for body in bodies]
    return "[\n        " + ", \n        ".join(texts) + "\n      ]" if texts else ""


def _pooling(op: Any) -> int:
    """Maxima are kept with their places, where the axes are in MXNet's usual order."""
    return 2 if op.pool_type == "max" and op.kernel and not str(op.layout).endswith("C") else 1


#: operators whose outputs for their own use are others in MXNet; files count MXNet's
HIDDEN_OUTPUTS: Mapping[str, Callable[[Any], int]] = {
    "BilinearSampler": lambda op: 2,
    "Correlation": lambda op: 3,
    "GridGenerator": lambda op: 2,
    "IdentityAttachKLSparseReg": lambda op: 1,
    "InstanceNorm": lambda op: 3,
    "L2Normalization": lambda op: 2,
    "LRN": lambda op: 2,
    "Pooling": _pooling,
    "RNN": lambda op: op.num_visible_outputs,
    "SpatialTransformer": lambda op: 3,
    "_contrib_BatchNormWithReLU": lambda op: 4,
    "_contrib_DeformablePSROIPooling": lambda op: 2,
    "_linalg_det": lambda op: 3,
    "_linalg_slogdet": lambda op: 4,
    "sort": lambda op: 2,
    "topk": lambda op: 2 if op.ret_typ in ("both", "value") else 1,
}


def counted_outputs(node: Node) -> int:
    """How many outputs MXNet counts for `node` in `node_row_ptr`."""
    count = None if node.op is None else HIDDEN_OUTPUTS.get(node.op.name)
    return node.num_outputs if count is None else count(node.op)


def _node_text(node: Node, number: Mapping[Node, int], versions: dict[Node, int]) -> str:
    """One node; `versions` counts how often each state was changed so far."""
    counts = input_versions(node, versions)
    inputs = [[number[e.node], e.index, v] for e, v in zip(node.inputs, counts, strict=True)]
    inputs = inputs if node.op is None else node.op.filed(inputs)
    fields = {
        "op": _string("null" if node.op is None else node.op.name),
        "name": _string(node.name),
        "attrs": _attrs(node.attrs),
        "inputs": _sequence(inputs, 6),
        "subgraphs": _subgraphs(node),
    }
    rows = (f'      "{key}": {text}' for key, text in fields.items() if text)
    return "{\n" + ", \n".join(rows) + "\n    }"


def _attrs(attrs: Mapping[str, str]) -> str:
    rows = [f"{_string(k)}: {_string(v)}" for k, v in sorted(attrs.items())]
    if len(rows) < 2:
        return f"{{{rows[0]}}}" if rows else ""
    return "{\n        " + ", \n        ".join(rows) + "\n      }"


def _sequence(members: Sequence[Any], indent: int) -> str:
    texts = [str(m) for m in members]
    if len(texts) <= ONE_LINE:
        return f"[{', '.join(texts)}]"
    inner = " " * (indent + 2)
    return "[\n" + inner + f", \n{inner}".join(texts) + "\n" + " " * indent + "]"


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def _string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def loads(text: str, where: str = "symbol JSON") -> Graph:
    """The graph in `text`, whichever version of MXNet wrote it.

    Raises:
        FormatError: no such graph; an operator or attribute that is unknown; it names the node.
    """
    return build(legacy.upgrade(parse(text, where), where), where)


def parse(text: str, where: str) -> dict[str, Any]:
    """The JSON object in `text`, with the lists that a graph has.

    Raises:
        FormatError: it is not JSON, or no graph.
    """
    try:
        found = json.loads(text, strict=False)  # MXNet writes control characters as they are
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: expected JSON, got {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{where}: expected an object, got {type(found).__name__}")
    for key in ("nodes", "heads"):
        if not isinstance(found.get(key), list):
            raise FormatError(f"{where}: expected a list {key!r}, got {found.get(key)!r:.60}")
    return found


def build(found: Mapping[str, Any], where: str) -> Graph:
    """The graph that an object of the current layout says.

    Raises:
        FormatError: a node or head that is malformed; it names the node.
    """
    specs = found["nodes"]
    nodes: list[Node | None] = [None] * len(specs)
    for at in _operands_first(specs, where):
        nodes[at] = _node(specs[at], at, nodes, where)
    outputs = (_entry(h, nodes, f"{where}: head {k}") for k, h in enumerate(found["heads"]))
    return Graph(list(outputs))


def _operands_first(specs: Sequence[Any], where: str) -> Iterable[int]:
    """The numbers of the nodes in an order where operands come first; FormatError on a cycle."""
    waiting = [_references(spec, at, len(specs), where) for at, spec in enumerate(specs)]
    if all(r < at for at, refs in enumerate(waiting) for r in refs):
        return range(len(specs))
    readers: list[list[int]] = [[] for _ in specs]
    missing = [len(refs) for refs in waiting]
    for at, refs in enumerate(waiting):
        for r in refs:
            readers[r].append(at)
    order = [at for at, count in enumerate(missing) if not count]
    for at in order:  # grows while it is walked
        for reader in readers[at]:
            missing[reader] -= 1
            if not missing[reader]:
                order.append(reader)
    if len(order) < len(specs):
        names = [_name(specs[at], at) for at, count in enumerate(missing) if count]
        raise FormatError(f"{where}: nodes {', '.join(names[:5])} read each other in a cycle")
    return order


def _references(spec: Any, at: int, count: int, where: str) -> list[int]:
    """The numbers of the nodes that a node reads."""
    who = f"{where}: node {_name(spec, at)}"
    if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
        raise FormatError(f"{who}: expected an object with a name, got {spec!r:.60}")
    inputs = spec.get("inputs", [])
    if not isinstance(inputs, list):
        raise FormatError(f"{who}: expected a list of inputs, got {inputs!r:.60}")
    for given in inputs:
        fits = isinstance(given, list) and len(given) in (2, 3)
        if not (fits and all(type(g) is int for g in given) and 0 <= given[0] < count):
            expected = f"[node below {count}, output, version]"
            raise FormatError(f"{who}: expected inputs as {expected}, got {given!r:.60}")
    return [given[0] for given in inputs]


def _name(spec: Any, at: int) -> str:
    name = spec.get("name") if isinstance(spec, dict) else None
    return repr(name) if isinstance(name, str) else f"number {at}"


def _node(spec: Mapping[str, Any], at: int, nodes: Sequence[Node | None], where: str) -> Node:
    name, attrs = sys.intern(spec["name"]), spec.get("attrs", {})
    who = f"{where}: node {name!r}"
    strings = isinstance(attrs, dict) and all(isinstance(v, str) for v in attrs.values())
    if not strings or not isinstance(spec.get("op"), str):
        raise FormatError(
            f"{who}: expected an operator and strings as attributes, got {spec!r:.90}"
        )
    inputs = [_entry(given, nodes, who) for given in spec.get("inputs", [])]
    if spec["op"] == "null":
        if inputs:
            raise FormatError(f"{who}: expected no inputs of a variable, got {len(inputs)}")
        return Node(None, name, (), attrs)
    op = operator(spec["op"], attrs, who, _bodies(spec, who))
    if len(inputs) != len(op.inputs()):
        expected = f"{len(op.inputs())} inputs of {op.name} ({', '.join(op.inputs())})"
        raise FormatError(f"{who}: expected {expected}, got {len(inputs)}")
    node = Node(op, name, op.arranged(inputs), attrs)
    versions = [given[2] if len(given) == 3 else 0 for given in spec.get("inputs", [])]
    node.versions = tuple(op.arranged(versions))
    return node


def _bodies(spec: Mapping[str, Any], who: str) -> tuple[Body, ...]:
    """The subgraphs of a node; FormatError where one is malformed."""
    given = spec.get("subgraphs", [])
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise FormatError(f"{who}: expected a list of subgraphs, got {given!r:.60}")
    found = []
    for k, each in enumerate(given):
        where = f"{who}: subgraph {k}"
        for key in ("nodes", "heads"):
            if not isinstance(each.get(key), list):
                raise FormatError(f"{where}: expected a list {key!r}, got {each.get(key)!r:.60}")
        found.append(Body(build(each, where).outputs))
    return tuple(found)


def _entry(given: Any, nodes: Sequence[Node | None], who: str) -> Entry:
    fits = isinstance(given, list) and len(given) in (2, 3) and all(type(g) is int for g in given)
    node = nodes[given[0]] if fits and 0 <= given[0] < len(nodes) else None
    if node is None or not 0 <= given[1] < node.num_outputs:
        raise FormatError(f"{who}: expected [node, output, version], got {given!r:.60}")
    return Entry(node, given[1])


def operator(name: str, attrs: Mapping[str, str], who: str, subgraphs: Sequence[Any] = ()) -> Any:
    """The operator called `name` with the parameters among `attrs`, and bodies where it has some.

    Raises:
        FormatError: no operator has this name, or it has no such parameter; it begins with `who`.
    """
    try:
        more = {"subgraphs": tuple(subgraphs)} if subgraphs else {}
        return registry.find(name).parse({**more, **parameters(attrs)})
    except GnomonError as error:
        raise FormatError(f"{who}: {error}") from None


def parameters(attrs: Mapping[str, str]) -> dict[str, str]:
    """Those of a node's attributes that are its operator's parameters: not `__these__`."""
    return {k: v for k, v in attrs.items() if not (k.startswith("__") and k.endswith("__"))}
