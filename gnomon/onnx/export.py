"""`export_model`: a network and its parameters as an ONNX file.

The graph's nodes are translated in order by the table; shapes and dtypes are inferred for two sizes
of everything that is left open, so that a size that differs is known to depend on an input. Every
node without a translation is told in one error, before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gnomon import __version__, symbol
from gnomon import dtype as dtypes
from gnomon import ndarray as nd
from gnomon.base import ParamError, complaint
from gnomon.dtype import DType
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ground.files import replacing
from gnomon.onnx.library import element, element_of, onnx
from gnomon.onnx.table import Unsupported, exports
from gnomon.onnx.writer import IR_VERSION, OPSET, Call, Free, Size, Writer, failure
from gnomon.symbol import Symbol

LARGE = 1 << 31  # bytes that one ONNX file may have
LABEL = "label"  # the input of losses that predicting does not read
Arrays = Mapping[str, np.ndarray[Any, Any]]


class Input(NamedTuple):
    """An input of the model: its dtype, its shape, and what sizes are called that are left open."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    free: tuple[Any, ...]  # None: fixed; a name; "" for a size without a name


def export_model(
    sym: Any,
    params: Any,
    in_shapes: Any = None,
    in_types: Any = np.float32,
    onnx_file_path: str = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Any = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Any = None,
    large_model: bool = False,
) -> str:
    """Write a network as an ONNX file, of opset 17; the file's path.

    Args:
        sym: a symbol, or the path of one.
        params: arrays by name (`arg:` and `aux:` before names may be there), or the path of them.
        in_shapes, in_types: shapes and dtypes of the inputs that are no parameters, in order or by
            name; one dtype is for all. `input_shape` and `input_type` are older names of them.
        onnx_file_path: where the file goes; what stood there stays until it is complete.
        verbose: print what is written.
        dynamic: leave the first size of every input open, or those that follow.
        dynamic_input_shapes: shapes in which None or a name stands for a size left open.
        run_shape_inference: have ONNX note the shapes of what is computed.
        large_model: keep weights in a file beside, `<onnx_file_path>.data`, as beyond 2 GB.

    Raises:
        GnomonError: the package onnx is missing; nodes without a translation, every one of them.
        ParamError: shapes, dtypes or parameters are missing, or of no input.
        ShapeError, DTypeError: they do not go together.

    >>> import gnomon as mx, tempfile
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros((2,))}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = mx.onnx.export_model(net, params, [(1, 3)], onnx_file_path=folder + "/fc.onnx")
    ...     mx.contrib.onnx.get_model_metadata(path)["output_tensor_data"]
    [('fc', (1, 2))]
    """
    onnx()
    net = symbol.load(sym) if isinstance(sym, (str, os.PathLike)) else sym
    if not isinstance(net, Symbol):
        raise ParamError(complaint("export_model", "sym", "a symbol or its path", repr(sym)))
    arrays = _parameters(params)
    graph = net._graph
    shapes = in_shapes if input_shape is None else input_shape
    types = in_types if input_type is None else input_type
    inputs = _inputs(graph, arrays, shapes, types, dynamic_input_shapes, dynamic)
    model = _Export(graph, arrays, inputs).model(os.fspath(onnx_file_path))
    if run_shape_inference:
        model = onnx("shape_inference").infer_shapes(model)
    if verbose:
        print(onnx("printer").to_text(model.graph))
    _write(model, os.fspath(onnx_file_path), large_model)
    return os.fspath(onnx_file_path)


def _parameters(params: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by name, as NumPy's."""
    found = nd.load(os.fspath(params)) if isinstance(params, (str, os.PathLike)) else params
    if not isinstance(found, Mapping):
        expected = "arrays by name, or the path of a file of them"
        raise ParamError(complaint("export_model", "params", expected, type(found).__name__))
    plain = {}
    for name, value in found.items():
        array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
        plain[name.split(":", 1)[1] if name.startswith(("arg:", "aux:")) else name] = array
    return plain


def labels(graph: Graph) -> set[Node]:
    """The variables that only losses read, as labels."""
    found: dict[Node, bool] = {}
    for node in graph.topo:
        if node.op is None:
            continue
        for name, entry in zip(node.op.inputs(), node.inputs, strict=True):
            if entry.node.op is None:
                found[entry.node] = found.get(entry.node, True) and name == LABEL
    return {node for node, only in found.items() if only}


def _inputs(
    graph: Graph, arrays: Arrays, shapes: Any, types: Any, free: Any, dynamic: bool
) -> list[Input]:
    """The inputs of the model, as the caller describes them."""
    skipped = labels(graph)
    nodes = [n for n in graph.variables if n.name not in arrays and n not in skipped]
    names = [n.name for n in nodes]
    missing = [n.name for n in nodes if n in graph.states]
    if missing:
        expected = "the values of every state"
        raise ParamError(complaint("export_model", "params", expected, f"none of {missing}"))
    given = _each("in_shapes", shapes, names)
    opened = _each("dynamic_input_shapes", free, names) if free is not None else {}
    plain = isinstance(types, (Mapping, list, tuple))
    dtype = _each("in_types", types, names) if plain else dict.fromkeys(names, types)
    found = []
    for name in names:
        shape = given.get(name, opened.get(name))
        if shape is None or name not in dtype:
            expected = f"a shape and a dtype for each of {', '.join(names)}"
            raise ParamError(complaint("export_model", "in_shapes", expected, f"none for {name!r}"))
        marks = opened.get(name, [None, *shape[1:]] if dynamic else shape)
        if len(marks) != len(shape):
            expected, got = f"{len(shape)} sizes for {name!r}", tuple(marks)
            raise ParamError(complaint("export_model", "dynamic_input_shapes", expected, got))
        sizes = tuple(s if isinstance(s, (int, np.integer)) else 2 for s in shape)
        calls = tuple(None if isinstance(m, (int, np.integer)) else m or "" for m in marks)
        found.append(Input(name, dtypes.of(dtype[name]), tuple(map(int, sizes)), calls))
    return found


def _each(argument: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """What was given for each input, in order or by name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        extra = sorted(set(given) - set(names))
        if not extra:
            return dict(given)
        got = f"some for {', '.join(extra)}"
    else:
        rows = list(given)
        if rows and isinstance(rows[0], (int, np.integer)):  # the shape of the only input
            rows = [tuple(rows)]
        if len(rows) == len(names):
            return dict(zip(names, rows, strict=True))
        got = f"{len(rows)}"
    expected = f"one for each input: {', '.join(names) or 'there is none'}"
    raise ParamError(complaint("export_model", argument, expected, got))


class _Export:
    """The translation of one graph."""

    def __init__(self, graph: Graph, arrays: Arrays, inputs: Sequence[Input]) -> None:
        self.graph, self.arrays, self.inputs = graph, arrays, inputs
        self.shapes = self._sizes()
        self.types = self._dtypes()
        self.writer = Writer([n.name for n in graph.variables])
        self.names: dict[Entry, str] = {}
        self._sources()

    def _given(self, factor: int) -> dict[Node, tuple[int, ...]]:
        """Shapes of the variables: sizes that are left open times a factor."""
        known = {i.name: i for i in self.inputs}
        found = {}
        for node in self.graph.variables:
            if node.name in self.arrays:
                found[node] = self.arrays[node.name].shape
            elif node.name in known:
                rows = zip(known[node.name].shape, known[node.name].free, strict=True)
                found[node] = tuple(s if f is None else s * factor for s, f in rows)
        return found

    def _sizes(self) -> dict[Entry, tuple[Size, ...]]:
        one, other = (infer.shapes(self.graph, self._given(k)) for k in (1, 2))
        unknown = sorted({repr(e) for e, s in one.items() if not infer.complete(s)})
        if unknown:
            raise ParamError(
                complaint(
                    "export_model",
                    "in_shapes",
                    "all shapes",
                    f"not that of {', '.join(unknown[:5])}",
                )
            )
        return {
            e: tuple(a if a == b else Free(a, b) for a, b in zip(s, other[e] or (), strict=True))
            for e, s in one.items()
            if s is not None
        }

    def _dtypes(self) -> dict[Entry, DType]:
        given = {
            n: dtypes.of(self.arrays[n.name].dtype)
            for n in self.graph.variables
            if n.name in self.arrays
        }
        known = {i.name: i.dtype for i in self.inputs}
        given |= {n: known[n.name] for n in self.graph.variables if n.name in known}
        found = infer.types(self.graph, given)
        return {e: dtype or dtypes.float32 for e, dtype in found.items()}

    def _sources(self) -> None:
        """Where a size that is left open can be read: an axis of an input."""
        for node in self.graph.variables:
            for axis, size in enumerate(self.shapes[Entry(node, 0)]):
                if isinstance(size, Free) and node.name in {i.name for i in self.inputs}:
                    self.writer.sources.setdefault(size, (node.name, axis))

    def model(self, path: str) -> Any:
        """The whole as a protobuf message.

        Raises:
            Unsupported: nodes have no translation.
        """
        problems = []
        for node in self.graph.topo:
            if node.op is None:
                self.names[Entry(node, 0)] = node.name
                continue
            try:
                self._translate(node)
            except Unsupported as error:
                problems.append(f"node {node.name!r}: operator {node.op.name}: {error}")
                self.names.update((e, "") for e in node.entries())
        if problems:
            raise failure("export_model", path, problems)
        outputs = self._outputs()
        return self._message(outputs)

    def _translate(self, node: Node) -> None:
        found = exports().get(node.op.name)
        if found is None:
            raise Unsupported("has no translation")
        self.writer.prefix = node.name
        names = [self.names[e] for e in node.inputs]
        call = Call(node, names, self.shapes, self.types, self._value)
        before = len(self.writer.nodes)
        made = found.write(self.writer, call)
        made = [made] if isinstance(made, str) else list(made)
        fresh = {n for new in self.writer.nodes[before:] for n in new.output}
        for k, (entry, name) in enumerate(zip(node.visible(), made, strict=False)):
            wish = node.name if len(made) == 1 else f"{node.name}{k}"
            self.names[entry] = name
            if name in fresh:
                self.names[entry] = self.writer.name(wish)
                self.writer.rename(name, self.names[entry])

    def _value(self, entry: Entry) -> np.ndarray[Any, Any] | None:
        """The values of what is computed of parameters alone; None where inputs count."""
        graph = Graph([entry])
        if any(n.name not in self.arrays for n in graph.variables):
            return None
        if entry.node.op is None:
            return self.arrays[entry.node.name]
        given = {
            n.name: nd.array(self.arrays[n.name], dtype=self.arrays[n.name].dtype)
            for n in graph.variables
        }
        found: np.ndarray[Any, Any] = Symbol([entry]).eval(**given)[0].asnumpy()
        return found

    def _outputs(self) -> list[tuple[str, Entry]]:
        """The graph's outputs: what is an input or a parameter, or given twice, is copied."""
        made = {n for node in self.writer.nodes for n in node.output}
        found: list[tuple[str, Entry]] = []
        for entry in self.graph.outputs:
            name = self.names[entry]
            if name not in made or name in [n for n, _ in found]:
                self.writer.prefix = entry.node.name
                name = self.writer.op("Identity", name)
                final = self.writer.name(f"{entry.node.name}_output")
                self.writer.rename(name, final)
                name = final
            found.append((name, entry))
        return found

    def _message(self, outputs: Sequence[tuple[str, Entry]]) -> Any:
        helper, numpy_helper = onnx("helper"), onnx("numpy_helper")
        nodes = needed(self.writer.nodes, {name for name, _ in outputs})
        read = {name for node in nodes for name in node.input}
        tensors = {**self.arrays, **self.writer.constants}
        weights = [_tensor(numpy_helper, tensors[n], n) for n in tensors if n in read]
        inputs = [
            helper.make_tensor_value_info(i.name, element(i.dtype), _marked(i)) for i in self.inputs
        ]
        marks = {
            size: name
            for i in self.inputs
            for size, name in zip(self.shapes[self._entry(i.name)], i.free, strict=True)
            if name
        }
        results = [
            helper.make_tensor_value_info(
                name,
                element(self.types[e]),
                [s if isinstance(s, int) else marks.get(s) for s in self.shapes[e]],
            )
            for name, e in outputs
        ]
        graph = helper.make_graph(nodes, "gnomon", inputs, results, weights)
        return helper.make_model(
            graph,
            producer_name="gnomon",
            producer_version=__version__,
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )

    def _entry(self, name: str) -> Entry:
        return next(Entry(n, 0) for n in self.graph.variables if n.name == name)


def _marked(given: Input) -> list[Any]:
    """The shape of an input for ONNX: names, and None for sizes left open without one."""
    rows = zip(given.shape, given.free, strict=True)
    return [size if mark is None else mark or None for size, mark in rows]


def _tensor(numpy_helper: Any, array: np.ndarray[Any, Any], name: str) -> Any:
    tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
    assert tensor.data_type == element_of(array)
    return tensor


def needed(nodes: Sequence[Any], outputs: set[str]) -> list[Any]:
    """The nodes that the outputs depend on, in order."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted |= set(node.input)
    return kept[::-1]


def _write(model: Any, path: str, large: bool) -> None:
    """Check the model and write it, with its weights beside it where it is large."""
    if not large and model.ByteSize() >= LARGE:
        expected = "True, for a model of more than 2 GB"
        raise ParamError(complaint("export_model", "large_model", expected, False))
    if large:
        _weights_beside(model, f"{path}.data")
    else:
        onnx("checker").check_model(model)
    with replacing("export_model", path) as stream:
        stream.write(model.SerializeToString())


def _weights_beside(model: Any, path: str) -> None:
    """Move the values of the weights into a file of their own, each at a multiple of 64 bytes."""
    helper = onnx("external_data_helper")
    name, place = Path(path).name, 0
    with replacing("export_model", path) as stream:
        for tensor in model.graph.initializer:
            raw = tensor.raw_data
            stream.write(bytes(-place % 64))
            place += -place % 64
            helper.set_external_data(tensor, name, place, len(raw))
            stream.write(raw)
            place += len(raw)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx().TensorProto.EXTERNAL
