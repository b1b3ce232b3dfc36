"""Networks in mixed precision: symbols, models and blocks with casts where operators want them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, GnomonError, complaint
from gnomon.context import current_context
from gnomon.contrib.amp.lists import chosen
from gnomon.dtype import DType
from gnomon.gluon.block.hybrid import HybridBlock
from gnomon.gluon.block.imported import SymbolBlock
from gnomon.graph.node import Entry, Graph, Node
from gnomon.module.bucketing_module import BucketingModule
from gnomon.ndarray import NDArray
from gnomon.ops import registry
from gnomon.ops.precision import WIDEST, Condition, Precision, wanted
from gnomon.symbol import Symbol
from gnomon.symbol.symbol import output_name

Names = Sequence[str]


class _Pass:
    """A graph with casts: `made` and `types` are of each entry of the old graph."""

    def __init__(self, precision: Precision, excluded: Names, params: Mapping[str, DType]) -> None:
        self.precision, self.excluded, self.params = precision, frozenset(excluded), params
        self.made: dict[Entry, Entry] = {}
        self.types: dict[Entry, DType | None] = {}
        self.casts: dict[tuple[Entry, DType], Entry] = {}

    def run(self, graph: Graph) -> list[Entry]:
        """The entries of the new graph; what it gives in the target dtype is cast to float32."""
        for node in graph.topo:
            if node.op is None:
                self._keep(node)
            else:
                self._convert(node)
        float32 = dtypes.float32
        target = self.precision.target
        return [
            self._cast(e, float32) if self.types[e] is target else self.made[e]
            for e in graph.outputs
        ]

    def _keep(self, node: Node) -> None:
        """A variable: float32, but for what its attribute or `params` say."""
        new, entry = Node(None, node.name, (), node.attrs), Entry(node, 0)
        dtype = self.params.get(node.name)
        if dtype is not None:
            new.attrs["__dtype__"] = str(dtype.flag)
        elif "__dtype__" in node.attrs:
            dtype = dtypes.from_flag(int(node.attrs["__dtype__"]))
        self.made[entry], self.types[entry] = Entry(new, 0), dtype or dtypes.float32

    def _convert(self, node: Node) -> None:
        """An operator on inputs that are cast as it wants them."""
        count, excluded = len(node.op.arguments()), node.name in self.excluded
        rule = dtypes.float32 if excluded else self.precision.rule(node.op)
        arguments = node.inputs[:count]
        types = [self.types[e] for e in arguments]
        known = [t or dtypes.float32 for t in types]
        found = wanted(rule, known)
        outputs = _outputs(node, found)
        if outputs is None:  # it refuses such a mixture
            found = wanted(WIDEST, known)
            outputs = _outputs(node, found) or [None] * node.num_outputs
        inputs = [
            self.made[e] if t is None or t is dtype else self._cast(e, dtype)
            for e, t, dtype in zip(arguments, types, found, strict=True)
        ]
        states = [self.made[e] for e in node.inputs[count:]]
        new = Node(node.op, node.name, [*inputs, *states], node.attrs)
        for old, entry, dtype in zip(node.entries(), new.entries(), outputs, strict=True):
            self.made[old], self.types[old] = entry, dtype

    def _cast(self, entry: Entry, dtype: DType) -> Entry:
        """An old entry cast; once for all who read it."""
        found = self.casts.get((entry, dtype))
        if found is None:
            op = registry.find("amp_cast").parse({"dtype": dtype.name})
            name = f"{output_name(entry)}_amp_cast_{dtype.name}"
            node = Node(op, name, (self.made[entry],), {"dtype": dtype.name})
            found = self.casts[entry, dtype] = Entry(node, 0)
        return found


def _outputs(node: Node, types: Sequence[DType]) -> list[DType | None] | None:
    """The dtypes of an operator's outputs; None where it does not take such inputs."""
    try:
        return list(node.op.infer_type(list(types))[1])
    except DTypeError:
        return None


def _optional(graph: Graph, precision: Precision, excluded: Names) -> set[str]:
    """Variables that only operators in the target dtype read."""
    found = set()
    for node in graph.arguments:
        readers = graph.consumers.get(Entry(node, 0), ())
        if readers and all(
            precision.rule(r.op) is precision.target and r.name not in excluded for r in readers
        ):
            found.add(node.name)
    return found


def _converted(
    where: str,
    sym: Any,
    precision: Precision,
    excluded: Names | None,
    data: Collection[str] | None,
    optional: bool,
) -> Symbol:
    """The symbol with casts; variables that are no data say their dtypes where `data` is given.

    Raises:
        TypeError: it is no symbol.
    """
    if not isinstance(sym, Symbol):
        raise TypeError(complaint(where, "sym", "a Symbol", type(sym).__name__))
    graph, out = sym._graph, list(excluded or ())
    params: dict[str, DType] = {}
    if optional or data is not None:
        small = _optional(graph, precision, out) if optional else set()
        names = [n.name for n in graph.variables if n.name not in (data or ("data",))]
        params = {n: precision.target if n in small else dtypes.float32 for n in names}
    return Symbol(_Pass(precision, out, params).run(graph))


def convert_symbol(
    sym: Any,
    target_dtype: Any = "float16",
    target_dtype_ops: Names | None = None,
    fp32_ops: Names | None = None,
    conditional_fp32_ops: Sequence[Condition] | None = None,
    excluded_sym_names: Names | None = None,
    data_names: Names | None = None,
    cast_optional_params: bool = False,
) -> Symbol:
    """A symbol that computes in mixed precision, and gives float32.

    >>> import gnomon as mx
    >>> net = mx.sym.softmax(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc"))
    >>> net = convert_symbol(net)
    >>> [n for n in net.get_internals().list_outputs() if "cast" in n][-1]
    'fc_output_amp_cast_float32_output'

    Args:
        sym: the symbol; it stays as it is.
        target_dtype: "float16" or "bfloat16".
        target_dtype_ops: operators that compute in it; None for `list_lp16_ops`.
        fp32_ops: operators that compute in float32; None for `list_fp32_ops`.
        conditional_fp32_ops: rows of (operator, parameter, values) that compute in float32.
        excluded_sym_names: names of nodes that compute in float32.
        data_names: inputs that are no parameters; `data` where None.
        cast_optional_params: whether parameters that only operators in the target dtype read are
            in that dtype themselves, and not cast each time.

    Raises:
        TypeError: `sym` is no symbol.
        ParamError: another dtype, an unknown operator, or one in two lists.
    """
    where = "convert_symbol"
    lists = chosen(where, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops)
    return _converted(where, sym, lists, excluded_sym_names, data_names, cast_optional_params)


def convert_model(
    sym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    target_dtype: Any = "float16",
    target_dtype_ops: Names | None = None,
    fp32_ops: Names | None = None,
    conditional_fp32_ops: Sequence[Condition] | None = None,
    excluded_sym_names: Names | None = None,
    cast_optional_params: bool = False,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """A symbol in mixed precision with its parameters, as `load_checkpoint` gives them.

    Arguments are those of `convert_symbol`; inputs are what `arg_params` does not have.

    Raises:
        TypeError: something else than a symbol and two dictionaries.
        ParamError: as `convert_symbol`.
    """
    where = "convert_model"
    for name, given in (("arg_params", arg_params), ("aux_params", aux_params)):
        if not isinstance(given, Mapping):
            raise TypeError(complaint(where, name, "a dictionary", type(given).__name__))
    lists = chosen(where, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops)
    if not isinstance(sym, Symbol):
        raise TypeError(complaint(where, "sym", "a Symbol", type(sym).__name__))
    data = [n for n in sym.list_arguments() if n not in arg_params]
    found = _converted(where, sym, lists, excluded_sym_names, data, cast_optional_params)
    return found, *_cast_params(found, arg_params, aux_params)


def _cast_params(symbol: Symbol, *groups: Mapping[str, Any]) -> tuple[dict[str, NDArray], ...]:
    """Parameters by name in the dtypes that a symbol says."""
    types = _types(symbol)
    return tuple(
        {n: x.astype(types[n].numpy) if n in types else x for n, x in group.items()}
        for group in groups
    )


def _types(symbol: Symbol) -> dict[str, DType]:
    """The dtypes that the variables of a symbol say."""
    nodes = symbol._graph.variables
    flags = {n.name: n.attrs["__dtype__"] for n in nodes if "__dtype__" in n.attrs}
    return {name: dtypes.from_flag(int(flag)) for name, flag in flags.items()}


def convert_hybrid_block(
    block: Any,
    target_dtype: Any = "float16",
    target_dtype_ops: Names | None = None,
    fp32_ops: Names | None = None,
    conditional_fp32_ops: Sequence[Condition] | None = None,
    excluded_sym_names: Names | None = None,
    ctx: Any = None,
    cast_optional_params: bool = False,
) -> SymbolBlock:
    """A block that computes what a hybridized one did, in mixed precision, with its own parameters.

    Arguments are those of `convert_symbol`; `ctx` is where the parameters are, the current context
    where None.

    Raises:
        TypeError: it is no HybridBlock.
        GnomonError: it was not called since it was hybridized.
        ParamError: as `convert_symbol`.
    """
    where = "convert_hybrid_block"
    if not isinstance(block, HybridBlock):
        raise TypeError(complaint(where, "block", "a HybridBlock", type(block).__name__))
    lists = chosen(where, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops)
    compiled = block._last
    if compiled is None:
        raise GnomonError(f"{where}: call block.hybridize(), then the block once")
    trace, data = compiled.trace, compiled.trace.names
    found = _converted(where, trace.symbol, lists, excluded_sym_names, data, cast_optional_params)
    given = [x for x in trace.inputs if x is not None]
    made = SymbolBlock(found, given)
    params, types = block.collect_params(), _types(found)
    for name, param in made.collect_params().items():
        dtype = types.get(name, dtypes.float32)
        param.cast(dtype.name)
        param.initialize(ctx=ctx or current_context())
        param.set_data(params[name]._reduce().astype(dtype.numpy))
    return made


def convert_bucketing_module(
    bucketing_mod: Any,
    target_dtype: Any = "float16",
    target_dtype_ops: Names | None = None,
    fp32_ops: Names | None = None,
    conditional_fp32_ops: Sequence[Condition] | None = None,
    excluded_sym_names: Names | None = None,
    cast_optional_params: bool = False,
) -> BucketingModule:
    """A module with the parameters of another one, whose buckets compute in mixed precision.

    It must still be bound. Arguments are those of `convert_symbol`.

    Raises:
        TypeError: it is no BucketingModule.
        GnomonError: it has no buckets or no parameters yet.
        ParamError: as `convert_symbol`.
    """
    where = "convert_bucketing_module"
    if not isinstance(bucketing_mod, BucketingModule):
        got = type(bucketing_mod).__name__
        raise TypeError(complaint(where, "bucketing_mod", "a BucketingModule", got))
    lists = chosen(where, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops)
    bucketing_mod._need(where, "binded", "params_initialized")
    generate = bucketing_mod._sym_gen

    def converted(key: Any) -> tuple[Symbol, Names, Names]:
        symbol, data, labels = generate(key)
        given = [*data, *(labels or ())]
        found = _converted(where, symbol, lists, excluded_sym_names, given, cast_optional_params)
        return found, data, labels

    key = bucketing_mod._default_bucket_key
    args, aux = _cast_params(converted(key)[0], *bucketing_mod.get_params())
    return BucketingModule.load_dict(None, converted, key, args, aux, **bucketing_mod._given)
