"""Binding: which arrays a symbol computes on, found among what the caller gave or made anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from gnomon import dtype as dtypes
from gnomon.base import ParamError, ShapeError, complaint, shown
from gnomon.context import Context
from gnomon.dtype import DType
from gnomon.executor import arrays
from gnomon.executor.executor import Executor
from gnomon.executor.inputs import hidden
from gnomon.executor.network import SAVERS, Bound, Known, contexts_of, inferred
from gnomon.executor.stepwise import StepwiseExecutor
from gnomon.graph import infer, verify
from gnomon.graph.node import Entry, Graph, Node
from gnomon.graph.place import place
from gnomon.graph.storage import DENSE, STORAGE, gradients, storage
from gnomon.ground.collector import resting
from gnomon.ground.record import record
from gnomon.ndarray.core.elsewhere import together
from gnomon.shape import prod

Shape = tuple[int, ...]
Groups = Mapping[str, Context]


class Arrays(NamedTuple):
    """What `bind` is given: arrays and requests, as lists in order or as dicts by name."""

    args: Any
    args_grad: Any
    grad_req: Any
    aux_states: Any


class Wanted(NamedTuple):
    """What `simple_bind` is given: requests, and dtypes and shapes by name."""

    grad_req: Any
    types: Mapping[str, Any]
    storage: Mapping[str, str]
    shapes: Mapping[str, Any]


@record(frozen=False, slots=False)
class Shared:
    """Arrays that may be used again: another executor's, and those of a table that grows."""

    executor: Executor | None = None
    names: Sequence[str] | None = None
    buffer: dict[str, Any] | None = field(default=None)


@resting()
def bind(
    symbol: Any, ctx: Context, given: Arrays, groups: Groups, shared: Executor | None
) -> Executor:
    """An executor on the arrays given; see `Symbol.bind`."""
    graph = symbol._graph
    _check_context("bind", ctx, groups)
    names = [n.name for n in graph.arguments]
    args = _in_order("bind", "args", names, given.args, optional=False)
    states = [n.name for n in graph.auxiliary]
    aux = _in_order("bind", "aux_states", states, given.aux_states or {}, optional=False)
    if not groups:
        _check_places(ctx, "args", names, args)
        _check_places(ctx, "aux_states", states, aux)
    for array in (*args, *aux):
        arrays.shown(array)
    grads = _in_order("bind", "args_grad", names, given.args_grad or {}, optional=True)
    requests = requested("bind", names, given.grad_req)
    requests = ["null" if g is None else r for g, r in zip(grads, requests, strict=True)]
    tables = [*zip(graph.arguments, args, strict=True), *zip(graph.auxiliary, aux, strict=True)]
    known = inferred(graph, tables, stepwise=True)
    return _bound(symbol, ctx, groups, Bound(args, grads, aux, requests), shared, known)


@resting()
def simple_bind(
    symbol: Any, ctx: Context, wanted: Wanted, groups: Groups, shared: Shared
) -> Executor:
    """An executor on new arrays; see `Symbol.simple_bind`."""
    graph = symbol._graph
    _check_context("simple_bind", ctx, groups)
    placed = place(graph, ctx, groups)
    shapes, types = _inferred(graph, wanted)
    kinds, grad_kinds = _stored(graph, wanted.storage)
    specs = {
        n: Spec(shapes[Entry(n, 0)], placed[n], types[Entry(n, 0)], kinds[n])
        for n in graph.variables
    }
    names = [n.name for n in graph.arguments]
    requests = requested("simple_bind", names, wanted.grad_req)
    pool = _Pool(shared)
    args, grads = [], []
    for node, request in zip(graph.arguments, requests, strict=True):
        spec = specs[node]
        array = pool.argument(node.name, spec, is_given=node.name in wanted.shapes)
        args.append(array if request == "null" else arrays.shown(array))
        spec = spec._replace(stype=grad_kinds[node])
        grads.append(None if request == "null" else pool.gradient(node.name, spec))
    aux = [pool.state(n.name, specs[n]) for n in graph.auxiliary]
    known = shapes, types
    return _bound(symbol, ctx, groups, Bound(args, grads, aux, requests), shared.executor, known)


def _bound(
    symbol: Any,
    ctx: Context,
    groups: Groups,
    bound: Bound,
    shared: Executor | None,
    known: Known,
) -> Executor:
    arena = None if shared is None else shared.lend()
    given = (*bound.args, *bound.grads, *bound.aux)
    sparse = any(x is not None and not arrays.in_program(x) for x in given)
    graph = symbol._graph
    apart = bool(groups) and _is_apart(graph, ctx, groups, bound)
    stepwise = sparse or apart or infer.by_values(graph, known[0])
    kind = StepwiseExecutor if stepwise else Executor
    return kind(symbol, ctx, bound, dict(groups), arena, known)


def _check_context(where: str, ctx: Any, groups: Groups) -> None:
    named = {f"group2ctx[{group}]": context for group, context in groups.items()}
    for name, context in {"ctx": ctx, **named}.items():
        if not isinstance(context, Context):
            raise TypeError(complaint(where, name, "a context such as cpu()", repr(context)))


def _is_apart(graph: Graph, ctx: Context, groups: Groups, bound: Bound) -> bool:
    """Whether nodes run elsewhere than on `ctx`, where either has a memory of its own."""
    placed = place(graph, ctx, groups, contexts_of(graph, bound))
    return not all(together(ctx, other) for other in placed.values())


def _check_places(ctx: Context, what: str, names: Sequence[str], given: Sequence[Any]) -> None:
    """Without `group2ctx` everything is on one context; DeviceError names what is not."""
    for name, array in zip(names, given, strict=True):
        arrays.check_context("bind", f"{what}[{name}]", ctx, array)


def _in_order(where: str, what: str, names: Sequence[str], given: Any, optional: bool) -> list[Any]:
    """The array of each name, from a list in order or a dict; None where `optional` ones lack.

    Raises:
        ParamError: too few or too many in a list, a name that is missing.
        TypeError: neither list nor dict, or something else than arrays in it.
    """
    if isinstance(given, Mapping):
        lacking = [n for n in names if n not in given]
        if lacking and not optional:
            expected = f"an array for each of {', '.join(names)}"
            raise ParamError(complaint(where, what, expected, f"none for {', '.join(lacking)}"))
        found = [given.get(n) for n in names]
    elif isinstance(given, (list, tuple)):
        if len(given) != len(names):
            expected = f"{len(names)} arrays ({', '.join(names)})"
            raise ParamError(complaint(where, what, expected, len(given)))
        found = list(given)
    else:
        raise TypeError(complaint(where, what, "a list or a dict of arrays", shown(given)))
    for name, array in zip(names, found, strict=True):
        if not (arrays.is_array(array) or (array is None and optional)):
            raise TypeError(complaint(where, f"{what}[{name}]", "an NDArray", shown(array)))
    return found


def requested(where: str, names: Sequence[str], given: Any) -> list[str]:
    """The request of each argument: 'write', 'add' or 'null'.

    Raises:
        ParamError: another word, or a list of another length.
    """
    if isinstance(given, str):
        found = [given] * len(names)
    elif isinstance(given, Mapping):
        found = [given.get(n, "null") for n in names]
    elif isinstance(given, (list, tuple)) and len(given) == len(names):
        found = list(given)
    else:
        expected = f"a word, a dict, or a list of {len(names)}"
        raise ParamError(complaint(where, "grad_req", expected, shown(given)))
    for name, word in zip(names, found, strict=True):
        if word not in ("null", *SAVERS):
            expected = f"'write', 'add' or 'null' for {name}"
            raise ParamError(complaint(where, "grad_req", expected, repr(word)))
    return found


def _inferred(graph: Graph, wanted: Wanted) -> tuple[dict[Entry, Shape], dict[Entry, DType]]:
    """Every shape, but those that values decide, and dtype; what no dtype follows for is float32.

    Raises:
        GnomonError: shapes stay unknown.
    """
    given = {
        n: infer.given_shape("simple_bind", n.name, wanted.shapes[n.name])
        for n in graph.variables
        if wanted.shapes.get(n.name) is not None
    }
    shapes = infer.shapes(graph, given)
    kinds: dict[Node, DType | None] = {
        n: dtypes.of(wanted.types[n.name]) for n in graph.variables if n.name in wanted.types
    }
    types = infer.types(graph, kinds)
    for node in graph.arguments:
        if types[Entry(node, 0)] is None:
            kinds[node] = dtypes.float32
            types = infer.types(graph, kinds)
    by_values = infer.by_values(graph, shapes)
    verify.check_complete(graph, shapes, types, "simple_bind", by_values, wanted.shapes)
    return shapes, types  # type: ignore[return-value]


def _stored(graph: Graph, wanted: Mapping[str, str]) -> tuple[dict[Node, str], dict[Node, str]]:
    """The storage of each variable, and that of its gradient.

    Raises:
        ParamError: there is no such storage.
    """
    for name, stype in wanted.items():
        if stype not in STORAGE:
            expected = f"one of {', '.join(STORAGE)}"
            raise ParamError(complaint("simple_bind", f"stype_dict[{name}]", expected, repr(stype)))
    known = {n: wanted[n.name] for n in graph.variables if n.name in wanted}
    kinds = storage(graph, known)
    return {n: kinds[Entry(n, 0)] for n in graph.variables}, gradients(graph, kinds)


class Spec(NamedTuple):
    """What an array has to be."""

    shape: Shape
    ctx: Context
    dtype: DType
    stype: str = DENSE

    def fits(self, array: Any) -> bool:
        """Whether an array is that."""
        found = array.shape, arrays.dtype_of(array), array.stype
        return found == (self.shape, self.dtype, self.stype)

    def zeros(self) -> Any:
        """A new array of zeros."""
        return arrays.zeros(*self)

    def __str__(self) -> str:
        return f"shape {self.shape}, {self.dtype.name}, {self.stype} storage"


class _Pool:
    """Arrays for `simple_bind`: the shared executor's, those of the shared table, or new ones."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    def argument(self, name: str, spec: Spec, is_given: bool) -> Any:
        """The array of an argument; those whose shapes are given are no parameters."""
        other, names = self.shared.executor, self.shared.names
        if names is not None:
            is_given = name not in names
        if other is not None and not is_given:
            found = self._of(other.arg_dict, name, spec, must=names is not None)
            if found is not None:
                return found
        return self._tabled(name, spec)

    def gradient(self, name: str, spec: Spec) -> Any:
        """The array of a gradient."""
        other, names = self.shared.executor, self.shared.names
        if other is not None and (names is None or name in names):
            found = self._of(other.grad_dict, name, spec, must=False)
            if found is not None:
                return found
        return spec.zeros()

    def state(self, name: str, spec: Spec) -> Any:
        """The array of a state."""
        other = self.shared.executor
        found = None
        if other is not None:
            found = self._of(other.aux_dict, name, spec, must=False)
        return spec.zeros() if found is None else found

    def _of(self, table: Mapping[str, Any], name: str, spec: Spec, must: bool) -> Any:
        """The array called `name` in another executor, where it fits."""
        array = table.get(name)
        if array is None or spec.fits(array):
            return array
        if must:
            found = Spec(array.shape, spec.ctx, arrays.dtype_of(array), array.stype)
            got = f"{found} in shared_exec"
            raise ShapeError(complaint("simple_bind", name, str(spec), got))
        return None

    def _tabled(self, name: str, spec: Spec) -> Any:
        """The start of a large enough array of the shared table, or a new array, entered there."""
        table = None if spec.stype != DENSE else self.shared.buffer
        found = None if table is None else table.get(name)
        if found is not None and arrays.dtype_of(found) is spec.dtype:
            if found.shape == spec.shape:
                return found
            if found.size >= prod(spec.shape):
                return arrays.head(found, spec.shape)
        made = hidden(spec.zeros())
        if table is not None:
            table[name] = made
        return made
