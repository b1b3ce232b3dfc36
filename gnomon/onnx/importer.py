"""`import_model`: an ONNX file as a symbol with its parameters.

A file is data of others: whatever is wrong with it is told in a `FormatError`, weights are read
from beside it alone, and nothing of it is run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gnomon import ndarray as nd
from gnomon import symbol
from gnomon.base import FormatError, GnomonError, ParamError, complaint
from gnomon.context import Context, cpu
from gnomon.gluon import SymbolBlock
from gnomon.ground.files import read_bytes
from gnomon.name import NameManager
from gnomon.onnx.library import onnx
from gnomon.onnx.reader import UNKNOWN, Reader, Value, dtype_of
from gnomon.onnx.weights import array
from gnomon.onnx.writer import failure
from gnomon.symbol import Symbol

OLDEST = 7  # the first opset that is read

Params = dict[str, nd.NDArray]


def import_model(
    model_file: str | os.PathLike[str], input_shapes: Mapping[str, Sequence[int]] | None = None
) -> tuple[Symbol, Params, Params]:
    """The network of an ONNX file: its symbol, its parameters and its auxiliary states.

    The symbol's arguments have the names of the model's inputs and weights.

    Args:
        model_file: a file, of opset 7 or later.
        input_shapes: shapes of inputs by name, for sizes that the file leaves open.

    Raises:
        GnomonError: the package onnx is missing; nodes without a translation, every one of them.
        FormatError: the file is no ONNX model, or a broken one.
        ParamError: `input_shapes` names no input, or another shape than the file.
        FileError: the file cannot be read.

    >>> import gnomon as mx, tempfile
    >>> net = mx.sym.Activation(mx.sym.var("data"), act_type="tanh", name="act")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = mx.onnx.export_model(net, {}, [(2, 3)], onnx_file_path=folder + "/act.onnx")
    ...     sym, arg_params, aux_params = mx.contrib.onnx.import_model(path)
    >>> sym.list_arguments(), sym.eval(data=mx.nd.ones((2, 3)))[0].shape
    (['data'], (2, 3))
    """
    net, arguments, states, _ = _read(model_file, input_shapes)
    return net, arguments, states


def import_to_gluon(
    model_file: str | os.PathLike[str],
    ctx: Context | Sequence[Context] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> SymbolBlock:
    """The network of an ONNX file as a block, whose parameters are on `ctx`.

    Raises:
        GnomonError, FormatError, ParamError, FileError: as `import_model`.
    """
    net, arguments, states, names = _read(model_file, input_shapes)
    block = SymbolBlock(net, [symbol.var(name) for name in names])
    params = block.collect_params()
    for name, values in {**arguments, **states}.items():
        if name in params:
            params[name]._load_init(values, ctx or cpu(), cast_dtype=True, dtype_source="saved")
    return block


def get_model_metadata(model_file: str | os.PathLike[str]) -> dict[str, list[tuple[Any, ...]]]:
    """What an ONNX file takes and gives.

    `input_tensor_data` has the name, shape and number of the element type of each input that is no
    weight, `output_tensor_data` the name and shape of each output. A size left open is its name,
    or 0.

    Raises:
        GnomonError: as `import_model`.
    """
    graph = load(model_file).graph
    weights = {t.name for t in graph.initializer}
    inputs = [
        (i.name, _named_shape(i), i.type.tensor_type.elem_type)
        for i in graph.input
        if i.name not in weights
    ]
    outputs = [(o.name, _named_shape(o)) for o in graph.output]
    return {"input_tensor_data": inputs, "output_tensor_data": outputs}


def _named_shape(value: Any) -> tuple[Any, ...]:
    return tuple(d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim)


def load(model_file: str | os.PathLike[str]) -> Any:
    """The protobuf message of a file.

    Raises:
        FormatError: it is none.
        FileError: it cannot be read.
    """
    data = read_bytes("import_model", model_file)
    model = onnx().ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's own kinds of errors differ between its versions
        raise FormatError(f"{os.fspath(model_file)!r} is no ONNX model: {error}") from error
    if not model.HasField("graph") or not model.opset_import:
        raise FormatError(f"{os.fspath(model_file)!r} is no ONNX model: it has no graph or opset")
    return model


def _read(
    model_file: str | os.PathLike[str], input_shapes: Mapping[str, Sequence[int]] | None
) -> tuple[Symbol, Params, Params, list[str]]:
    path = os.fspath(model_file)
    model = load(path)
    try:
        reader, inputs, outputs = read(model, path, input_shapes or {})
    except GnomonError:
        raise
    except Exception as error:  # names that are no text, and whatever else a file may hold
        raise FormatError(f"{path!r} is a broken ONNX model: {error!r}") from error
    net = outputs[0] if len(outputs) == 1 else symbol.Group(outputs)
    wanted = set(net.list_inputs())
    arrays = {n: nd.array(a, dtype=a.dtype) for n, a in reader.params.items() if n in wanted}
    states = set(net.list_auxiliary_states())
    return (
        net,
        {n: a for n, a in arrays.items() if n not in states},
        {n: a for n, a in arrays.items() if n in states},
        [name for name in inputs if name in wanted],
    )


def read(
    model: Any, path: str, input_shapes: Mapping[str, Sequence[int]]
) -> tuple[Reader, list[str], list[Symbol]]:
    """The reader that has translated a model, the names of its inputs, and its outputs.

    Raises:
        FormatError: the model is broken.
        Unsupported: nodes have no translation.
    """
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
    if opsets.get("", OLDEST) < OLDEST:
        expected = f"opset {OLDEST} or later"
        raise FormatError(f"{path!r}: expected {expected}, got {opsets['']}")
    functions = {(f.domain, f.name): f for f in model.functions}
    reader = Reader(opsets, functions)
    graph = model.graph
    scope = {t.name: Value(t.name, array(t, path)) for t in graph.initializer}
    if graph.sparse_initializer:
        raise FormatError(f"{path!r}: weights in sparse storage are not read")
    inputs = [i.name for i in graph.input if i.name not in scope]
    unknown = sorted(set(input_shapes) - set(inputs))
    if unknown:
        expected = f"shapes of {', '.join(inputs) or 'nothing'}"
        raise ParamError(complaint("import_model", "input_shapes", expected, f"one of {unknown}"))
    for value in graph.input:
        if value.name not in scope:
            scope[value.name] = _input(reader, value, input_shapes.get(value.name), path)
    with NameManager():
        problems = reader.run(graph.node, scope)
        if problems:
            raise failure("import_model", path, problems)
        return reader, inputs, [_output(reader, o.name, scope, path) for o in graph.output]


def _input(reader: Reader, value: Any, given: Sequence[int] | None, path: str) -> Value:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise FormatError(f"{path!r}: input {value.name!r}: expected a tensor, got {kind}")
    tensor = value.type.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = [d.dim_value if d.HasField("dim_value") else UNKNOWN for d in tensor.shape.dim]
    if given is not None:
        sizes = [int(size) for size in given]
        agree = shape is None or (
            len(shape) == len(sizes)
            and all(a in (b, UNKNOWN) for a, b in zip(shape, sizes, strict=True))
        )
        if not agree or min(sizes, default=1) < 1:
            expected = f"sizes that go with {shape} of {value.name!r}"
            raise ParamError(complaint("import_model", "input_shapes", expected, sizes))
        shape = sizes
    if shape is not None and any(size == 0 or size < UNKNOWN for size in shape):
        got = f"shape {tuple(shape)}"
        raise FormatError(f"{path!r}: input {value.name!r}: expected sizes above 0, got {got}")
    try:
        dtype = dtype_of(tensor.elem_type)
    except GnomonError as error:
        raise FormatError(f"{path!r}: input {value.name!r}: {error}") from error
    return reader.input(value.name, shape, dtype)


def _output(reader: Reader, name: str, scope: Mapping[str, Value], path: str) -> Symbol:
    value = scope.get(name)
    if value is None:
        raise FormatError(f"{path!r}: output {name!r} is never made")
    if value.symbol is None:
        return reader.variable(value.name, value.array)
    return value.symbol  # type: ignore[no-any-return]
