"""`gnomon inspect model-symbol.json [model-0000.params]`: what a model is, and what it needs here.

It tells the layers and their parameters, the operators, with those that are missing here or treated
otherwise, parameters that are missing or not used, the memory that given shapes take, and draws.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import FormatError, GnomonError, ParamError, complaint
from gnomon.compatibility.absent import PAGE
from gnomon.context import cpu
from gnomon.graph.legacy import BEFORE_VERSIONS, version
from gnomon.ground.files import read_json, replacing
from gnomon.ops import registry
from gnomon.shape import SHAPES_OPTION, named_shape
from gnomon.visualization import plot_network, print_summary

# What docs/differences.md says of operators that networks have: a word on each.
OTHERWISE = {
    "BatchNorm": "gamma is left as it is",
    "CTCLoss": "labels that are too long have loss 0 and gradient 0",
    "Dropout": "p=1 gives 0, not NaN",
    "LRN": "the gradient is exact",
    "LeakyReLU": "gradients of selu and of PReLU's gamma are the derivatives",
    "RNN": "sequence lengths count on the processor too; projection_size trains there, too",
    "SoftmaxActivation": "in mode instance the gradient is along the axis of the output",
    "SoftmaxOutput": "out_grad=True multiplies by the head gradient",
}


LEARNED = "weight", "bias", "gamma", "beta", "parameters"  # inputs of layers


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("symbol", type=Path, help="the network, a file `model-symbol.json`")
    add("params", type=Path, nargs="?", help="its parameters, a file `model-0000.params`")
    add("--shapes", default=[], **SHAPES_OPTION)
    add("--draw", type=Path, metavar="FILE", help="draw the network: .gv, or by graphviz .svg ...")


def main(given: argparse.Namespace) -> int:
    """Print all of it; gives the exit code, 1 where an operator or a parameter is missing.

    All files are read, and shapes tried, before anything is printed.

    Raises:
        GnomonError: a file cannot be read or is none; shapes that do not fit the network.
    """
    found = read(given.symbol)
    arrays = stored(given.params) if given.params else None
    shapes = dict(named_shape("inspect", word) for word in given.shapes)
    counts = Counter(node["op"] for node in found["nodes"] if node["op"] != "null")
    missing = not all(map(registry.has, counts))
    net = None if missing else sym.load(str(given.symbol))
    if net is not None and shapes:
        settle(net, arrays or {}, shapes)
    operators(counts, version(found, str(given.symbol)), given.symbol)
    if net is None:
        if arrays is not None:
            print(sizes(arrays))
        return 1
    lacking = [] if arrays is None else parameters(net, arrays, shapes)
    layers(net, arrays or {}, shapes)
    if shapes:
        memory(net, shapes)
    if given.draw:
        print(f"drawn: {draw(net, given.draw, shapes)}")
    return int(bool(lacking))


# --- files ----------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """The JSON of a network; its nodes need not be known here."""
    text = read_json("inspect", path)
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise FormatError(f"inspect: {path}: expected the JSON of a network: {error}") from None
    nodes = found.get("nodes") if isinstance(found, dict) else None
    if not isinstance(nodes, list) or not all(isinstance(n, dict) and "op" in n for n in nodes):
        raise FormatError(f"inspect: {path}: expected a list of nodes, each with its operator")
    return dict(found)


def stored(path: Path) -> dict[str, Any]:
    """The arrays of a file of parameters by their names, without `arg:` and `aux:`."""
    arrays = nd.load(path)
    if not isinstance(arrays, dict):
        raise FormatError(f"inspect: {path}: expected arrays with names, got a list of them")
    return {name.split(":", 1)[-1]: array for name, array in arrays.items()}


# --- what is told ---------------------------------------------------------------------------


def operators(counts: Mapping[str, int], written: int, path: Path) -> None:
    """Print how often each operator stands in a network, with a word on those that differ here."""
    by = "0.8 or older" if written == BEFORE_VERSIONS else f"{written // 10000}." + ".".join(
        str(written // unit % 100) for unit in (100, 1)
    )  # fmt: skip
    print(f"{path}: format of MXNet {by}, {sum(counts.values())} operators")
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if not registry.has(name):
            note = f"MISSING: not there yet ({PAGE})"
        else:
            note = OTHERWISE.get(registry.find(name).name, "")
        print(f"  {count:5} {name:24} {note}".rstrip())


def sizes(arrays: dict[str, Any]) -> str:
    """How many arrays and numbers there are, and the bytes that they take."""
    count = sum(x.size for x in arrays.values())
    nbytes = sum(x.size * x.dtype().itemsize for x in arrays.values())
    return f"parameters: {len(arrays)} arrays, {count:,} numbers, {amount(nbytes)}"


def amount(nbytes: int) -> str:
    """A number of bytes in words.

    >>> amount(3_670_016), amount(700)
    ('3.5 MB', '0.7 KB')
    """
    return f"{nbytes / 2**20:.1f} MB" if nbytes >= 2**20 else f"{nbytes / 2**10:.1f} KB"


def parameters(net: Any, arrays: dict[str, Any], shapes: Mapping[str, Any]) -> list[str]:
    """Print what the file of parameters holds, lacks, and has besides; gives what it lacks."""
    print(sizes(arrays))
    known = {*net.list_arguments(), *net.list_auxiliary_states()}
    besides = sorted(arrays.keys() - known)
    absent = [name for name in net.list_inputs() if name not in arrays]
    wanted = learned(net) - shapes.keys()
    lacking = [name for name in absent if name in wanted]
    inputs = [name for name in absent if name not in wanted]
    print(f"inputs, not in the file: {' '.join(inputs) or 'none'}")
    if lacking:
        print(f"MISSING, parameters that are not in the file: {' '.join(lacking)}")
    if besides:
        print(f"in the file, not in the network: {' '.join(besides)}")
    return lacking


def learned(net: Any) -> set[str]:
    """Names of the variables that layers learn, and of the states.

    >>> sorted(learned(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc")))
    ['fc_bias', 'fc_weight']
    """
    found = set(net.list_auxiliary_states())
    for node in net._graph.topo:
        roles = node.op.inputs() if node.op is not None else ()
        pairs = zip(roles, node.inputs, strict=False)
        found |= {e.node.name for role, e in pairs if role in LEARNED and e.node.op is None}
    return found


def settle(net: Any, arrays: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    """Check that the shapes of inputs settle those of all layers.

    Raises:
        ShapeError: those shapes and the stored arrays do not go together.
        ParamError: more shapes are needed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not settled is told below
        known = {name: arrays[name].shape for name in net.list_arguments() if name in arrays}
        settled = net.get_internals().infer_shape(**{**known, **shapes})[1]
    if settled is None:
        inputs = [name for name in net.list_arguments() if name not in {*arrays, *shapes}]
        expected = f"shapes of all inputs: also of {', '.join(inputs)}"
        raise ParamError(complaint("inspect", "--shapes", expected, shapes))


def layers(net: Any, arrays: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    """Print the layers: with the shapes of inputs a table, else the stored arrays of each."""
    if not shapes:
        for layer, inputs in rows(net):
            own = [f"{n} {'x'.join(map(str, arrays[n].shape))}" for n in inputs if n in arrays]
            print(f"  {layer:40} {', '.join(own)}".rstrip())
        return
    print_summary(net, shapes, line_length=96)


def rows(net: Any) -> Iterator[tuple[str, list[str]]]:
    """Name, with its operator, and the names of the inputs of each layer."""
    nodes = json.loads(net.tojson())["nodes"]
    for node in nodes:
        if node["op"] != "null":
            inputs = [nodes[number]["name"] for number, *_ in node["inputs"]]
            yield f"{node['name']}({node['op']})", inputs


def memory(net: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Print the bytes that prediction and training take beside the parameters."""
    for name, request, train in (("prediction", "null", False), ("training", "write", True)):
        executor = net.simple_bind(cpu(), grad_req=request, **shapes)
        plan = executor.memory_plan(is_train=train)
        held = sum(x.size * x.dtype().itemsize for x in every(executor))
        print(f"{name}: {amount(held)} of arrays, {amount(plan.total + plan.kept)} between "
              f"layers, for values of {amount(plan.unshared)}")  # fmt: skip


def every(executor: Any) -> Sequence[Any]:
    """The arrays that an executor is bound to: arguments, states, gradients."""
    found = [*executor.arg_arrays, *executor.aux_arrays, *executor.grad_arrays]
    return [x for x in found if x is not None]


def draw(net: Any, path: Path, shapes: dict[str, tuple[int, ...]]) -> str:
    """Draw the network into a file; its suffix says how. Gives the file's name.

    Raises:
        GnomonError: graphviz is not there, or does not draw such files.
    """
    form = path.suffix.lstrip(".")
    if form in ("", "gv", "dot"):
        drawing = plot_network(net, title=path.stem, save_format="gv", shape=shapes or None)
        with replacing("inspect", path) as stream:
            stream.write(drawing.source.encode())
        return str(path)
    if shutil.which("dot") is None:
        expected = "a file .gv, or the program dot of graphviz, which draws others"
        raise GnomonError(complaint("inspect", "--draw", expected, str(path)))
    try:
        drawing = plot_network(net, title=path.stem, save_format=form, shape=shapes or None)
        made = Path(drawing.render(filename=f"{path.stem}.gv", directory=str(path.parent)))
    except (ValueError, subprocess.SubprocessError) as error:  # of graphviz' package
        expected = "a file of a kind that graphviz draws"
        raise GnomonError(complaint("inspect", "--draw", expected, f"{path}: {error}")) from error
    made.replace(path)
    return str(path)
