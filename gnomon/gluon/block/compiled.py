"""`Compiled`: a traced block as programs, one for each kind of inputs, with its place on the tape.

A call that is recorded takes a program of its own, with memory for what its backward pass reads,
and gives it back when that has been, or when the tape lets go of it; so the same block may be
called several times before `backward`. A program reads parameters where they are, and writes their
gradients where those belong. Other calls share one program.

States: `seen` is the count of changes of parameters' arrays that was looked at last: programs hold
their addresses, so after a change those are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon.context import Context
from gnomon.gluon.block.program import Lease, Program, applied, gradients
from gnomon.gluon.block.trace import Trace, infer_params
from gnomon.gluon.parameter import DeferredInitializationError, Parameter
from gnomon.gluon.parameter.parameter import changes
from gnomon.ndarray.core import of_zeros
from gnomon.ndarray.mode import mode
from gnomon.ndarray.tape import Leaf, Network, Node, Output

Arrays = Sequence[Any]
OpHook = tuple[Callable[..., Any], bool]
KINDS_KEPT = 64  # of inputs, for which there are programs


class Compiled:
    """A trace with its parameters, and programs of it."""

    def __init__(
        self, where: str, trace: Trace, params: Any, op_hook: OpHook | None = None
    ) -> None:
        self.where, self.trace = where, trace
        self.is_single = trace.out_format == 0
        self.seen = -1
        self._op_hook = op_hook
        graph = trace.symbol._graph
        numbers = {x.name: k for k, x in enumerate(trace.inputs) if x is not None}
        self._params: dict[str, Parameter] = {
            n.name: params[n.name] for n in graph.variables if n.name not in numbers
        }
        self._vars = {name: param.var() for name, param in self._params.items()}
        self._arguments = [n.name for n in graph.arguments]
        self._fed = [n for n in self._arguments if n in numbers]
        self._numbers = [numbers[n] for n in self._fed]
        self._programs: dict[Any, list[Program]] = {}

    def fits(self) -> bool:
        """Whether parameters are still what they were when the block was traced."""
        return all(p._var is self._vars[n] for n, p in self._params.items())

    def prepare(self, flat: Arrays) -> None:
        """Look at the parameters again, if any have changed; make those that were deferred."""
        if self.seen == changes.count:
            return
        try:
            for param in self._params.values():
                param.list_data() if param.stype == "default" else param.list_ctx()
        except DeferredInitializationError:
            infer_params(self.where, self.trace, self._params, flat)
            for param in self._params.values():
                param._finish_deferred_init()
        self._programs.clear()
        self.seen = changes.count

    def __call__(self, flat: Arrays) -> list[Any]:
        """The outputs; `flat` are the inputs, all on one context.

        Raises:
            ShapeError, DTypeError: they do not go with the parameters; it names the node.
        """
        ctx = next(x for x in flat if x is not None).context
        given = [flat[k] for k in self._numbers]
        table = {n: p._on(p._data, ctx) for n, p in self._params.items()}
        table.update(zip(self._fed, given, strict=True))
        arrays = [table[n] for n in self._arguments]
        places = [x._tape for x in arrays] if mode.recording else [None] * len(arrays)
        if any(map(_is_sparse, arrays, places)):
            return applied(self.trace.symbol._graph, table, ctx)
        wanted = tuple(p if isinstance(p, Leaf) else p is not None for p in places)
        key = ctx, mode.training, wanted, *[(x.shape, x._dtype.name) for x in given]
        programs = self._programs.get(key)
        if programs is None:
            if len(self._programs) >= KINDS_KEPT:
                self._programs.clear()
            programs = self._programs[key] = []
        program = programs.pop() if programs else self._program(ctx, table, places)
        outputs = program.forward(given, mode.training)
        if not any(p is not None for p in places):
            programs.append(program)
            return outputs
        lease = Lease(program, programs, self.trace.symbol._graph, table)
        gives = [p is not None for p in places]
        kinds = [(x._layout, ctx) for x in outputs]
        node = Node(Network(gradients), places, gives, (lease,), kinds)
        for k, x in enumerate(outputs):
            x._tape = Output(node, k)
        return outputs

    def _program(self, ctx: Context, table: Mapping[str, Any], places: Sequence[Any]) -> Program:
        """A new program; gradients of parameters go where they belong."""
        args, grads, requests = dict(table), {}, {}
        for name, place in zip(self._arguments, places, strict=True):
            array = table[name]
            if name in self._fed:
                args[name] = of_zeros(array.shape, array._dtype, ctx)
            if name in self._params and isinstance(place, Leaf):
                grads[name], requests[name] = place.grad, place.req
            elif place is not None:
                grads[name], requests[name] = of_zeros(array.shape, array._dtype, ctx), "write"
        states = [table[n] for n in self.trace.symbol.list_auxiliary_states()]
        args = [args[n] for n in self._arguments]
        executor = self.trace.symbol.bind(ctx, args, grads, requests, states)
        if self._op_hook is not None:
            executor.set_monitor_callback(*self._told(*self._op_hook))
        feeds = [args[self._arguments.index(n)] for n in self._fed]
        return Program(executor, feeds)

    def _told(self, callback: Callable[..., Any], everything: bool) -> OpHook:
        """A hook as executors call it."""
        nodes = {n.name: n.op.name for n in self.trace.symbol._graph.topo if n.op is not None}

        def tell(name: str, array: Any) -> None:
            node = name
            while node not in nodes and "_" in node:
                node = node.rpartition("_")[0]
            callback(name, nodes.get(node, "null"), array)

        return tell, everything


def _is_sparse(array: Any, place: Any) -> bool:
    """Whether an array, or its gradient, is in sparse storage."""
    grad = place.grad if isinstance(place, Leaf) else None
    return array.stype != "default" or (grad is not None and grad.stype != "default")
