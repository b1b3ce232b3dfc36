"""A network as a table (`print_summary`) and as a drawing (`plot_network`)."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from gnomon import symbol as sym
from gnomon.base import DTypeError, GnomonError, ParamError, check_kind, complaint
from gnomon.ground.arguments import checked
from gnomon.ground.files import access, replacing
from gnomon.ground.record import record
from gnomon.ops import registry as operators

try:
    import graphviz
except ImportError:
    graphviz = None

Shapes = Mapping[str, Sequence[int]]


@record(slots=False)
class Node:
    """A node of a symbol's JSON: its operator (`null` for variables), attributes and inputs."""

    name: str
    op: str
    attrs: Mapping[str, str]
    inputs: tuple[int, ...]
    first: bool = field(default=False)  # the first in the file: the data, as a rule

    @property
    def shown(self) -> bool:
        """Whether the table has a row for it."""
        return self.first or self.op != "null"


def _nodes(where: str, symbol: Any) -> list[Node]:
    if not isinstance(symbol, sym.Symbol):
        raise DTypeError(complaint(where, "symbol", "a Symbol", type(symbol).__name__))
    return [
        Node(
            node["name"],
            node["op"],
            node.get("attrs", {}),
            tuple(entry[0] for entry in node["inputs"]),
            number == 0,
        )
        for number, node in enumerate(json.loads(symbol.tojson())["nodes"])
    ]


def _output_shapes(where: str, symbol: Any, shape: Shapes | None) -> dict[str, tuple[int, ...]]:
    """Shape of every output in the network by its name; without `shape`, of parameters alone.

    Those are then the ones that follow from the layers' own numbers, as those of biases do.
    """
    if shape is None:
        names, shapes = symbol.list_arguments(), symbol.infer_shape_partial()[0]
        pairs = zip(names, map(tuple, shapes), strict=True)
        return {name: known for name, known in pairs if known and min(known) > 0}
    check_kind(where, "shape", shape, Mapping, "shapes by the names of inputs")
    internals = symbol.get_internals()
    _, shapes, _ = internals.infer_shape(**shape)
    if shapes is None:
        raise ParamError(
            complaint(where, "shape", "shapes that settle those of all layers", dict(shape))
        )
    return dict(zip(internals.list_outputs(), map(tuple, shapes), strict=True))


def _shape_of(node: Node, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Shape of a node's (first) output without the batch axis."""
    names = [node.name] if node.op == "null" else [f"{node.name}_output", f"{node.name}_output0"]
    return next((shapes[name][1:] for name in names if name in shapes), ())


@checked
def print_summary(
    symbol: Any,
    shape: Shapes | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print a row per layer: name, output shape, number of parameters, layers before it.

    Args:
        symbol: the network.
        shape: shapes of the inputs by name; without them there are no shapes, and only those
            parameters are counted whose size needs none, as that of a bias.
        line_length: characters in a line.
        positions: ends of the columns as parts of the line.

    >>> import gnomon as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    >>> print_summary(net, {"data": (1, 4)}, line_length=80)
    ________________________________________________________________________________
    Layer (type)                       Output Shape    Param # Previous Layer
    ================================================================================
    data(null)                         4               0
    ________________________________________________________________________________
    fc(FullyConnected)                 3               15      data
    ================================================================================
    Total params: 15
    ________________________________________________________________________________
    """
    nodes = _nodes("print_summary", symbol)
    shapes = _output_shapes("print_summary", symbol, shape)
    counted = {*symbol.list_auxiliary_states(), *(shape or ()), *_labels(nodes)}  # which are none
    ends = [int(line_length * part) if part <= 1 else int(part) for part in positions]
    total = 0
    print("_" * line_length)
    print(_row(["Layer (type)", "Output Shape", "Param #", "Previous Layer"], ends))
    print("=" * line_length)
    rows = [node for node in nodes if node.shown]
    for node in rows:
        count = sum(_sizes(node, nodes, shapes, counted))
        total += count
        before = [nodes[i].name for i in node.inputs if nodes[i].shown]
        out = "x".join(map(str, _shape_of(node, shapes)))
        print(_row([f"{node.name}({node.op})", out, count, *before[:1]], ends))
        for name in before[1:]:
            print(_row(["", "", "", name], ends))
        print(("=" if node is rows[-1] else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def _labels(nodes: Sequence[Node]) -> Iterator[str]:
    """Names of the inputs that operators take as their `label`."""
    for node in nodes:
        if node.op != "null":
            taken = zip(node.inputs, operators.find(node.op).input_names, strict=False)
            yield from (nodes[k].name for k, name in taken if name == "label")


def _sizes(
    node: Node,
    nodes: Sequence[Node],
    shapes: Mapping[str, tuple[int, ...]],
    counted: set[str],
) -> Iterator[int]:
    """Sizes of the parameters among a node's inputs; one that several share counts at the first."""
    for entry in map(nodes.__getitem__, node.inputs):
        is_data = entry.op != "null" or entry.first or entry.name.endswith("_label")
        if not is_data and entry.name not in counted and entry.name in shapes:
            counted.add(entry.name)
            yield math.prod(shapes[entry.name])


def _row(fields: Sequence[Any], ends: Sequence[int]) -> str:
    """The fields in columns that end at `ends`, cut where they are too long."""
    line = ""
    for text, end in zip([*fields, ""][: len(ends)], ends, strict=False):
        line = f"{line}{text}"[:end].ljust(end)
    return line.ljust(ends[-1])


# The drawing

PLAIN = re.compile(r"[A-Za-z_]\w*|-?(\.\d+|\d+(\.\d*)?)", re.ASCII)
WORDS = ("node", "edge", "graph", "digraph", "subgraph", "strict")


class Digraph:
    """A drawing in the language of graphviz, where its Python package is not installed.

    As the package's own: `source` is the text, `save` writes it, `render` has `dot` draw it.

    >>> graph = Digraph("net", format="svg")
    >>> graph.node("a b", label="first")
    >>> graph.edge("a b", "c", label="2x3")
    >>> print(graph.source)
    digraph net {
    \t"a b" [label=first]
    \t"a b" -> c [label="2x3"]
    }
    <BLANKLINE>
    """

    def __init__(self, name: str, format: str = "pdf") -> None:
        self.name, self.format = name, format
        self.body: list[str] = []

    def node(self, name: str, label: str | None = None, **attrs: str) -> None:
        """Add a node."""
        self.body.append(f"\t{_quoted(name)}{_attributes(label, attrs)}\n")

    def edge(self, tail_name: str, head_name: str, label: str | None = None, **attrs: str) -> None:
        """Add an edge."""
        ends = f"{_quoted(tail_name)} -> {_quoted(head_name)}"
        self.body.append(f"\t{ends}{_attributes(label, attrs)}\n")

    @property
    def source(self) -> str:
        """The drawing as text."""
        return f"digraph {_quoted(self.name)} {{\n{''.join(self.body)}}}\n"

    def save(self, filename: str | None = None, directory: str | None = None) -> str:
        """Write the text to `filename` (the name and `.gv`); the path."""
        path = Path(directory or "") / (filename or f"{self.name}.gv")
        with access("Digraph.save", path, "write"):
            path.parent.mkdir(parents=True, exist_ok=True)
        with replacing("Digraph.save", path) as stream:
            stream.write(self.source.encode())
        return str(path)

    def render(self, filename: str | None = None, directory: str | None = None) -> str:
        """Write the text, and have graphviz draw it beside; the path of the drawing.

        Raises:
            GnomonError: graphviz is not installed, or refuses.
        """
        dot = shutil.which("dot")
        if dot is None:
            raise GnomonError("render: the program dot of graphviz is not installed; see `source`")
        path = self.save(filename, directory)
        drawn = f"{path}.{self.format}"
        done = subprocess.run(
            [dot, f"-T{self.format}", "-o", drawn, path], capture_output=True, check=False
        )
        if done.returncode:
            raise GnomonError(f"render: dot: {done.stderr.decode(errors='replace').strip()}")
        return drawn


def _quoted(text: str) -> str:
    """`text` as an identifier of graphviz's language."""
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    return '"' + text.replace('"', '\\"') + '"'


def _attributes(label: str | None, attrs: Mapping[str, str]) -> str:
    given = [] if label is None else [("label", label)]
    pairs = [f"{_quoted(k)}={_quoted(v)}" for k, v in [*given, *sorted(attrs.items())]]
    return f" [{' '.join(pairs)}]" if pairs else ""


COLOURS = {
    "null": "#8dd3c7",
    "Convolution": "#fb8072",
    "Deconvolution": "#fb8072",
    "FullyConnected": "#fb8072",
    "BatchNorm": "#bebada",
    "Activation": "#ffffb3",
    "LeakyReLU": "#ffffb3",
    "Pooling": "#80b1d3",
    "Concat": "#fdb462",
    "Flatten": "#fdb462",
    "Reshape": "#fdb462",
    "Softmax": "#b3de69",
}
OTHER_COLOUR = "#fccde5"
WEIGHTS = (
    "_weight",
    "_bias",
    "_beta",
    "_gamma",
    "_moving_var",
    "_moving_mean",
    "_running_var",
    "_running_mean",
)


@checked
def plot_network(
    symbol: Any,
    title: str = "plot",
    save_format: str = "pdf",
    shape: Shapes | None = None,
    dtype: Any = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
    """A `graphviz.Digraph` of the network, which `render()` draws; without that package a
    `Digraph` of this module, with the same `source`.

    Args:
        symbol: the network.
        title: name of the file that `render` writes.
        save_format: its format.
        shape: shapes of the inputs by name; edges then show shapes.
        dtype: dtypes of the inputs by name; shapes do not depend on them.
        node_attrs: graphviz attributes for every node.
        hide_weights: leave parameters out.
    """
    nodes = _nodes("plot_network", symbol)
    shapes = _output_shapes("plot_network", symbol, shape)
    make = Digraph if graphviz is None else graphviz.Digraph
    dot = make(name=title, format=save_format)
    style = {
        "shape": "box",
        "fixedsize": "true",
        "width": "1.3",
        "height": "0.8034",
        "style": "filled",
        **(node_attrs or {}),
    }
    shown = {
        node.name: node
        for node in nodes
        if not (hide_weights and node.op == "null" and node.name.endswith(WEIGHTS))
    }
    for node in shown.values():
        form = {"shape": "oval"} if node.op == "null" else {}
        colour = COLOURS.get(node.op, OTHER_COLOUR)
        dot.node(name=node.name, label=_label(node), fillcolor=colour, **{**style, **form})
    for node in shown.values():
        for source in map(nodes.__getitem__, node.inputs):
            if source.name in shown:
                label = "x".join(map(str, _shape_of(source, shapes)))
                dot.edge(node.name, source.name, dir="back", arrowtail="open", label=label)
    return dot


def _label(node: Node) -> str:
    """What stands in a node's box: for the common layers their main parameters."""
    attrs = node.attrs

    def size(key: str, default: str = "1") -> str:
        return attrs.get(key, default).strip("()[]").replace(" ", "").replace(",", "x")

    if node.op in ("Convolution", "Deconvolution"):
        return f"{node.op}\n{size('kernel')}/{size('stride')}, {attrs['num_filter']}"
    if node.op == "FullyConnected":
        return f"FullyConnected\n{attrs['num_hidden']}"
    if node.op in ("Activation", "LeakyReLU"):
        return f"{node.op}\n{attrs.get('act_type', 'leaky')}"
    if node.op == "Pooling":
        kind = attrs.get("pool_type", "max")
        return f"Pooling\n{kind}, {size('kernel')}/{size('stride')}"
    return node.name
