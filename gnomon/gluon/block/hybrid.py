"""`HybridBlock`: a block that computes on arrays and on symbols alike, so that it can be compiled.

States: *plain*: `forward` calls `hybrid_forward` on arrays. *Active*, after `hybridize`: the block
is traced when first called with inputs nested in some way, and what was traced is compiled for each
kind of inputs (`compiled.py`). Setting an attribute or casting drops traces; parameters that get
other arrays drop what was compiled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import GnomonError, ParamError, complaint, nearest, shown
from gnomon.context import Context, current_context
from gnomon.gluon.block.base import Block
from gnomon.gluon.block.compiled import Compiled
from gnomon.gluon.block.failure import explain
from gnomon.gluon.block.structure import InputError, flatten, regroup
from gnomon.gluon.block.trace import Trace, infer_params, infer_types, traced, warn_of_unused
from gnomon.gluon.parameter import DeferredInitializationError, ParameterDict
from gnomon.ndarray import NDArray
from gnomon.ndarray.core.tape import changes

FLAGS = "static_alloc", "static_shape", "inline_limit", "forward_bulk_size", "backward_bulk_size"


class HybridBlock(Block):
    """A block whose `hybrid_forward(F, x, ...)` is written for arrays and symbols at once.

    `F` is `mx.nd` or `mx.sym`; its parameters come by the names of the attributes that hold them.

    >>> import gnomon as mx
    >>> class Scale(HybridBlock):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.scale = self.params.get("scale", shape=(1, 3), init="ones")
    ...     def hybrid_forward(self, F, x, scale):
    ...         return F.broadcast_mul(x, scale)
    >>> net = Scale(prefix="net_")
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(mx.nd.ones((2, 3))).shape
    (2, 3)
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        self._active = False
        self._flags: dict[str, Any] = {}
        self._traces: dict[str, Compiled] = {}
        self._last: Compiled | None = None  # what was called last, which `export` writes
        self._op_hook: tuple[Callable[..., Any], bool] | None = None
        super().__init__(prefix, params)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, HybridBlock):
            self._clear_cached_op()

    def _clear_cached_op(self) -> None:
        """Drop all traces; libraries call it where what they trace will differ."""
        self._traces = {}
        self._last = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        begun = {"_traces": {}, "_last": None, "_op_hook": None}  # a pickle of MXNet has none
        self.__dict__.update(begun | state)

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Enter a block inside, which has to be a hybrid one.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(block, HybridBlock):
            where = f"{type(self).__name__} {self.name!r}"
            expected = "a HybridBlock, or use Sequential for other blocks"
            raise ChildError(complaint(where, name or "block", expected, shown(block)))
        super().register_child(block, name)
        self._clear_cached_op()

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Compile this block from its next call on, or, with `active=False`, no longer.

        What is compiled has its memory and shapes fixed, and runs in one piece, whatever the other
        flags say. `clear=False` keeps what was traced before.

        Raises:
            ParamError: a `backend`, of which there are none; an unknown flag.
        """
        where = f"{type(self).__name__} {self.name!r}.hybridize"
        if backend is not None:
            raise _no_backend(where, backend)
        for key, value in kwargs.items():
            expected = f"one of {', '.join(FLAGS)}{nearest(key, FLAGS)}"
            raise ParamError(complaint(where, key, expected, shown(value)))
        values = static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
        flags = dict(zip(FLAGS, values, strict=True))
        self._active, self._flags = bool(active), flags
        if clear:
            self._clear_cached_op()
        if self._active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(
                f"{where}: hooks of {self.name!r} are not called when it runs as part of another "
                "compiled block",
                stacklevel=2,
            )
        super().hybridize(active, clear=clear, **flags)

    def optimize_for(
        self,
        x: Any,
        *args: Any,
        backend: str | None = None,
        clear: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """MXNet hands a block to a plug-in here; gnomon has none: `hybridize` runs its passes.

        Raises:
            ParamError: a `backend` is named; an unknown flag.
        """
        values = static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
        flags = dict(zip(FLAGS, values, strict=True))
        self.hybridize(True, backend, clear, **flags, **kwargs)
        return self(x, *args)

    def cast(self, dtype: Any) -> None:
        """Have parameters of another type; the block is traced anew."""
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """As `Block.register_op_hook`: this block's operators are told when it is compiled."""
        self._op_hook = callback, monitor_all
        self._clear_cached_op()
        super().register_op_hook(callback, monitor_all)

    # --- computing ------------------------------------------------------------------------------

    def forward(self, x: Any, *args: Any) -> Any:
        """The outputs: by `hybrid_forward`, or by the program that it was compiled to.

        Raises:
            TypeError: neither arrays nor symbols, or both.
            GnomonError: arrays on several contexts, parameters that are not initialized.
        """
        if x.__class__ is NDArray and not args:
            if not self._active:
                return self._applied((x,), x.context)
            found = self._traces.get("[0]")
            if found is not None and found is self._last and found.seen == changes.count:
                outputs = found((x,))
                return (
                    outputs[0] if found.is_single else regroup(outputs, found.trace.out_format)[0]
                )
        return self._forward(x, *args)

    def _forward(self, *args: Any) -> Any:
        """`forward` without a shortcut."""
        kinds, contexts = _kinds(args)
        if len(kinds) != 1:
            where = f"{type(self).__name__} {self.name!r}"
            got = "both" if kinds else ", ".join(type(x).__name__ for x in args)
            if any(isinstance(x, np.ndarray) for x in args):
                got += "; nd.array(x) makes an NDArray of a NumPy array"
            raise InputError(complaint(where, "inputs", "NDArrays, or symbols", got))
        if kinds == {sym.Symbol}:
            params = {name: param.var() for name, param in self._reg_params.items()}
            with self.name_scope():
                return self.hybrid_forward(sym, *args, **params)
        if self._active:
            return self._call_compiled(args, contexts)
        return self._applied(args, contexts[0])

    def _applied(self, args: Sequence[Any], ctx: Context) -> Any:
        """What `hybrid_forward` gives for arrays, of which the first is on `ctx`."""
        params = self._arrays(args, ctx) if self._reg_params else {}
        try:
            if ctx is current_context():
                return self.hybrid_forward(nd, *args, **params)
            with ctx:
                return self.hybrid_forward(nd, *args, **params)
        except TypeError as error:
            explain(error, self, args)
            raise

    def _arrays(self, args: Sequence[Any], ctx: Context) -> dict[str, Any]:
        """The arrays of its own parameters, made now if their shapes were not known."""
        try:
            return {name: param.data(ctx) for name, param in self._reg_params.items()}
        except DeferredInitializationError:
            self.infer_shape(*args)
            for param in self.params.values():
                param._finish_deferred_init()
            return {name: param.data(ctx) for name, param in self._reg_params.items()}

    def _call_compiled(self, args: Sequence[Any], contexts: Sequence[Any]) -> Any:
        """The outputs of the compiled block."""
        where = f"{type(self).__name__} {self.name!r}"
        if len(contexts) > 1:
            expected = "arrays on one context, as a compiled block runs on one"
            got = ", ".join(map(str, contexts))
            raise GnomonError(complaint(where, "inputs", expected, got))
        flat, form = flatten(args, where, "inputs")
        found = self._traces.get(str(form))
        if found is None or not found.fits():
            found = self._compiled(where, self._traced(args))
            self._traces[str(form)] = found
        self._last = found
        with contexts[0]:
            found.prepare(flat)
            return regroup(found(flat), found.trace.out_format)[0]

    def _traced(self, args: Sequence[Any]) -> Trace:
        """What the block computes of such arguments."""
        return traced(self, args)

    @property
    def _cached_graph(self) -> tuple[Any, ...]:
        """Inputs and symbol of the last trace, which programs look at; () before the first."""
        return () if self._last is None else (self._last.trace.inputs, self._last.trace.symbol)

    def _get_graph(self, *args: Any) -> tuple[Any, ...]:
        """Inputs and symbol of what the block computes of such arguments."""
        trace = self._traced(args)
        return trace.inputs, trace.symbol

    def _compiled(self, where: str, trace: Trace) -> Compiled:
        params = self.collect_params()
        warn_of_unused(where, trace, params)
        return Compiled(where, trace, params, self._op_hook)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Hook: the outputs, computed from inputs and parameters by functions of `F`."""
        name = type(self).__name__
        raise NotImplementedError(
            f"{name} {self.name!r}: the class must define hybrid_forward(self, F, x, ...)"
        )

    # --- what follows from inputs ---------------------------------------------------------------

    def infer_shape(self, *args: Any) -> None:
        """Decide the shapes of all parameters from those of these inputs.

        Raises:
            GnomonError, ShapeError: the shape of one does not follow, or they contradict.
        """
        where = f"{type(self).__name__} {self.name!r}"
        flat, _ = flatten(args, where, "inputs")
        infer_params(where, self._traced(args), self.collect_params()._params, flat)

    def infer_type(self, *args: Any) -> None:
        """Decide the dtypes of all parameters from those of these inputs."""
        where = f"{type(self).__name__} {self.name!r}"
        flat, _ = flatten(args, where, "inputs")
        infer_types(self._traced(args), self.collect_params()._params, flat)

    # --- files ----------------------------------------------------------------------------------

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Write the compiled network to `path-symbol.json`, its parameters to `path-0000.params`.

        `SymbolBlock.imports`, `Module` and MXNet's other languages read them.

        Raises:
            GnomonError: the block was not called since it was hybridized.
        """
        if self._last is None:
            raise GnomonError(
                f"{type(self).__name__} {self.name!r}.export: there is no trace to write: call "
                "hybridize(), then call the block once"
            )
        symbol, params = self._last.trace.symbol, self.collect_params()
        states = set(symbol.list_auxiliary_states())
        arrays = {
            f"{'aux' if name in states else 'arg'}:{name}": params[name]._reduce()
            for name in symbol.list_inputs()
            if name in params
        }
        symbol.save(f"{os.fspath(path)}-symbol.json", remove_amp_cast=remove_amp_cast)
        nd.save(f"{os.fspath(path)}-{epoch:04d}.params", arrays)

    def _trace_record(self) -> dict[str, Any]:
        if self._last is None:
            return {}
        trace = self._last.trace
        inputs = [x for x in trace.inputs if x is not None]
        return {
            "in_format": trace.in_format,
            "out_format": trace.out_format,
            "inputs": [x.tojson() for x in inputs],
            "symbol": trace.symbol.tojson(),
        }

    def _take_trace(self, record: dict[str, Any]) -> None:
        """Be compiled, with the trace of a file of `save`."""
        trace = Trace(
            [sym.load_json(text) for text in record["inputs"]],
            sym.load_json(record["symbol"]),
            record["in_format"],
            record["out_format"],
        )
        self._active = True
        where = f"{type(self).__name__} {self.name!r}"
        self._last = self._traces[str(trace.in_format)] = self._compiled(where, trace)


class ChildError(TypeError, ValueError):
    """A block within a hybrid block that is none."""


def _kinds(args: Sequence[Any]) -> tuple[set[type], list[Any]]:
    """Which of arrays and symbols are among nested arguments, and the contexts of arrays."""
    kinds: set[type] = set()
    contexts: dict[Any, None] = {}
    work = list(args)[::-1]
    while work:
        each = work.pop()
        if isinstance(each, (list, tuple)):
            work += each[::-1]
        elif isinstance(each, NDArray):
            kinds.add(NDArray)
            contexts[each.context] = None
        elif isinstance(each, sym.Symbol):
            kinds.add(sym.Symbol)
    return kinds, list(contexts)


def _no_backend(where: str, backend: Any) -> ParamError:
    expected = "none: there are no plug-ins, hybridize() compiles the block itself"
    return ParamError(complaint(where, "backend", expected, repr(backend)))
