"""Traces: what a hybrid block computes, as a symbol of its inputs and parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gnomon import symbol as sym
from gnomon.base import GnomonError, ParamError, complaint, shown
from gnomon.gluon.block.failure import explain
from gnomon.gluon.block.structure import Format, flatten, regroup
from gnomon.gluon.parameter import Parameter
from gnomon.graph import infer
from gnomon.graph.node import Entry
from gnomon.ground.record import record
from gnomon.ops.infer import show_shape


@record(slots=False)
class Trace:
    """A symbol, its inputs as variables (None where nothing was given), and how both are nested."""

    inputs: Sequence[Any]
    symbol: Any
    in_format: Format
    out_format: Format

    @property
    def names(self) -> list[str]:
        """The names of the inputs that there are."""
        return [x.name for x in self.inputs if x is not None]


def traced(block: Any, args: Sequence[Any]) -> Trace:
    """What `block` computes of such arguments, by calling `hybrid_forward` on symbols.

    Raises:
        ParamError: there is no input at all.
        TypeError: the block gives something else than symbols.
    """
    where = f"{type(block).__name__} {block.name!r}"
    flat, form = flatten(args, where, "inputs")
    count = sum(x is not None for x in flat)
    if not count:
        raise ParamError(complaint(where, "inputs", "at least one array", "None alone"))
    names = iter(["data"] if count == 1 else [f"data{k}" for k in range(count)])
    variables = [None if x is None else sym.var(next(names)) for x in flat]
    grouped, _ = regroup(variables, _of_single(form))
    params = {name: param.var() for name, param in block._reg_params.items()}
    try:
        with block.name_scope():
            found = block.hybrid_forward(sym, *grouped, **params)
    except (AttributeError, TypeError) as error:
        if isinstance(error, TypeError):
            explain(error, block, args)
        error.add_note(
            f"{where} is {'hybridized' if block._active else 'traced for shapes'}: hybrid_forward "
            "was called with symbols, of which shapes and elements are not known, and with F as "
            "mx.sym"
        )
        raise
    outputs, out_format = flatten(found, where, "outputs")
    if not outputs or any(x is None for x in outputs):
        raise TypeError(complaint(where, "outputs", "symbols", shown(found)))
    symbol = outputs[0] if len(outputs) == 1 else sym.Group(outputs)
    return Trace(variables, symbol, form, out_format)


def warn_of_unused(where: str, trace: Trace, params: Iterable[str]) -> None:
    """Warn of inputs, by number, and of parameters that the outputs do not depend on."""
    read = set(trace.symbol.list_inputs())
    inputs = [k for k, x in enumerate(trace.inputs) if x is not None and x.name not in read]
    for kind, unused in ("inputs", inputs), ("parameters", [n for n in params if n not in read]):
        if unused:
            text = f"{where}: the outputs do not depend on the {kind} {', '.join(map(str, unused))}"
            warnings.warn(text, stacklevel=2)


def _of_single(form: Format) -> Format:
    """A format of symbols as one of arrays: inputs are single."""
    if isinstance(form, list):
        return [_of_single(each) for each in form]
    return min(form, 0)


def infer_params(
    where: str, trace: Trace, params: Mapping[str, Parameter], given: Sequence[Any]
) -> None:
    """Decide the shapes of parameters from those of the inputs.

    Raises:
        GnomonError: the shape of one does not follow.
        ShapeError: shapes contradict; it names the node.
    """
    graph = trace.symbol._graph
    shapes = dict(zip(trace.names, (x.shape for x in given if x is not None), strict=True))
    known = infer.shapes(graph, {n: shapes[n.name] for n in graph.variables if n.name in shapes})
    for node in graph.variables:
        param = params.get(node.name)
        shape = known[Entry(node, 0)]
        if param is None:
            continue
        if not infer.complete(shape):
            raise GnomonError(
                f"{where}: the shape of parameter {param.name!r}, {show_shape(shape)}, does not "
                f"follow from inputs of shapes {list(shapes.values())}: give the layer the size of "
                "its input"
            )
        param.shape = shape


def infer_types(trace: Trace, params: Mapping[str, Parameter], given: Sequence[Any]) -> None:
    """Decide the dtypes of parameters from those of the inputs."""
    graph = trace.symbol._graph
    types = dict(zip(trace.names, (x._dtype for x in given if x is not None), strict=True))
    known = infer.types(graph, {n: types[n.name] for n in graph.variables if n.name in types})
    for node in graph.variables:
        found = known[Entry(node, 0)]
        if node.name in params and found is not None:
            params[node.name].cast(found.numpy.type)
