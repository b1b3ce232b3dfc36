"""`SymbolBlock`: a block of a symbol, such as a file holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import ParamError, complaint, shown
from gnomon.dtype import wanted as wanted_dtype
from gnomon.gluon.block.hybrid import HybridBlock
from gnomon.gluon.block.structure import flatten
from gnomon.gluon.block.trace import Trace
from gnomon.gluon.parameter import ParameterDict
from gnomon.graph import infer
from gnomon.graph.node import Entry
from gnomon.ndarray import NDArray


class SymbolBlock(HybridBlock):
    """A block that computes symbols of some variables; all others are its parameters.

    >>> import gnomon as mx
    >>> x = mx.sym.var("data")
    >>> block = SymbolBlock(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), x)
    >>> block.initialize()
    >>> block(mx.nd.ones((3, 4))).shape, list(block.params)
    ((3, 2), ['fc_weight', 'fc_bias'])

    Args:
        outputs: a symbol, or a list of them.
        inputs: the variables that calls give, or a list of them.
        params: a dictionary of parameters that it shares.

    Raises:
        ParamError: an input that is no variable.
    """

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | None = None) -> None:
        super().__init__()
        self._prefix, self._name = "", ""
        self._params = ParameterDict("", params)
        given = [inputs] if isinstance(inputs, sym.Symbol) and len(inputs) == 1 else inputs
        variables, in_format = flatten(list(given), "SymbolBlock", "inputs")
        single = isinstance(outputs, (list, tuple)) and len(outputs) == 1
        found, out_format = flatten(outputs[0] if single else outputs, "SymbolBlock", "outputs")
        for x in variables:
            if not isinstance(x, sym.Symbol) or x._graph.outputs[0].node.op is not None:
                expected = "variables: the symbol of an operator is computed"
                raise ParamError(complaint("SymbolBlock", "inputs", expected, shown(x)))
        symbol = found[0] if len(found) == 1 else sym.Group(found)
        self._trace = Trace(variables, symbol, in_format, out_format)
        self._make_params()

    def __repr__(self) -> str:
        symbol, inputs = self._trace.symbol, len(self._trace.inputs)
        return f"{type(self).__name__}(\n{symbol!r} : {inputs} -> {len(symbol)}\n)"

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_trace" not in state:  # a pickle of MXNet
            inputs, symbol = state["_cached_graph"]
            trace = Trace(inputs, symbol, state["_in_format"], state["_out_format"])
            state = state | {"_trace": trace}
        super().__setstate__(state)

    def _make_params(self) -> None:
        """Have a parameter for each variable that is no input."""
        graph, names = self._trace.symbol._graph, set(self._trace.names)
        types = infer.types(graph)
        for node in (*graph.arguments, *graph.auxiliary):
            if node.name in names:
                continue
            known = types[Entry(node, 0)]
            how: dict[str, Any] = {"dtype": "float32" if known is None else known.numpy.type}
            if node in graph.states:
                how["grad_req"] = "null"
            self.params.get(node.name, allow_deferred_init=True, **how)
        start = _common(list(self._params.keys()))
        self._reg_params = {name[start:]: param for name, param in self._params.items()}

    @staticmethod
    def imports(
        symbol_file: str,
        input_names: Any,
        param_file: str | None = None,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """The network of a file of `export`, with its parameters.

        `input_names` are the inputs' names, or the only one's; without `param_file` the parameters
        are not initialized.

        Raises:
            FormatError, GnomonError: the files are no such files.
            ParamError: parameters are missing in the file, unless allowed.
        """
        symbol = sym.load(symbol_file)
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        known = symbol.list_inputs()
        for name in names:
            if name not in known:
                expected = f"one of {', '.join(known)}"
                raise ParamError(complaint("imports", "input_names", expected, repr(name)))
        block = SymbolBlock(symbol, [sym.var(name) for name in names])
        if param_file is not None:
            params = block.collect_params()
            params.load(
                param_file, ctx, allow_missing, ignore_extra, cast_dtype=True, dtype_source="saved"
            )
        return block

    def forward(self, x: Any, *args: Any) -> Any:
        """The outputs: compiled always for arrays; of symbols, the network composed with them."""
        if isinstance(x, NDArray):
            return self._call_compiled((x, *args), list({y.context: 0 for y in _arrays((x, args))}))
        flat, _ = flatten((x, *args), "SymbolBlock", "inputs")
        return self._traced(flat).symbol(**dict(zip(self._trace.names, flat, strict=True)))

    @property
    def _cached_graph(self) -> tuple[Any, ...]:
        return self._trace.inputs, self._trace.symbol

    def _traced(self, args: Sequence[Any]) -> Trace:
        given, _ = flatten(args, "SymbolBlock", "inputs")
        if len(given) != len(self._trace.inputs) or any(x is None for x in given):
            expected = f"an array for each of {', '.join(self._trace.names)}"
            got = f"{sum(x is not None for x in given)} arrays"
            raise ParamError(complaint("SymbolBlock", "inputs", expected, got))
        return self._trace

    def cast(self, dtype: Any) -> None:
        """Have parameters of another type; in half precision, those of BatchNorm stay float32."""
        super().cast(dtype)
        if wanted_dtype(dtype).name != "float16":
            return
        nodes = self._trace.symbol._graph.topo
        norms = (n for n in nodes if n.op is not None and n.op.name == "BatchNorm")
        names = (e.node.name for n in norms for e in n.inputs[1:])
        for name in (n for n in names if n in self.params):
            self.params[name].cast("float32")

    def reset_ctx(self, ctx: Any) -> None:
        """Move the parameters to other contexts."""
        self.collect_params().reset_ctx(ctx)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """A symbol block has no formula of this kind."""
        return self.forward(x, *args)


def _common(names: Sequence[str]) -> int:
    """How many letters several names have in common at the beginning."""
    if len(names) < 2:
        return 0
    first, last = min(names), max(names)
    pairs = enumerate(zip(first, last, strict=False))
    return next((k for k, (a, b) in pairs if a != b), len(first))


def _arrays(args: Any) -> list[Any]:
    """The arrays among nested arguments."""
    return [x for x in flatten(args, "SymbolBlock", "inputs")[0] if isinstance(x, nd.NDArray)]
