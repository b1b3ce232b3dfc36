"""`Compiled`: a traced block as programs, one for each kind of inputs, with its place on the tape.

A call that is recorded takes a program of its own, with memory for what its backward pass reads,
and gives it back when that has been, or when the tape lets go of it; so the same block may be
called several times before `backward`. A program reads parameters where they are, and writes their
gradients where those belong. Other calls share one program.

States: `seen` is the count of changes of parameters' arrays that was looked at last. After another
change they are looked at again; programs hold addresses, so those on other arrays are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon.context import Context
from gnomon.executor.arrays import in_program
from gnomon.gluon.block.program import Lease, applied, gradients
from gnomon.gluon.block.site import Site
from gnomon.gluon.block.trace import Trace, infer_params
from gnomon.gluon.parameter import DeferredInitializationError, Parameter
from gnomon.ground.record import put
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import BundledCall, Node, Output, changes, source

Arrays = Sequence[Any]
OpHook = tuple[Callable[..., Any], bool]


class Compiled:
    """A trace with its parameters, and programs of it on each context."""

    def __init__(
        self,
        where: str,
        trace: Trace,
        params: Mapping[str, Parameter],
        op_hook: OpHook | None = None,
    ) -> None:
        self.where, self.trace = where, trace
        self.is_single = trace.out_format == 0
        self.seen = -1
        self._op_hook = op_hook
        graph = trace.symbol._graph
        numbers = {x.name: k for k, x in enumerate(trace.inputs) if x is not None}
        self._params = {n.name: params[n.name] for n in graph.variables if n.name not in numbers}
        self._vars = {name: param.var() for name, param in self._params.items()}
        fed = [n.name for n in graph.arguments if n.name in numbers]
        self._numbers = [numbers[n] for n in fed]
        own = {n: p for n, p in self._params.items() if type(p).data is not Parameter.data}
        self._computed = list(own.values())  # by a class that gives other data at each call
        self._fed = [*fed, *own]
        self._bound = {n: p for n, p in self._params.items() if n not in own}
        self._sites: list[Site] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sites": []}  # programs hold addresses of this process

    def fits(self) -> bool:
        """Whether parameters are still what they were when the block was traced."""
        return all(p._var is self._vars[n] for n, p in self._params.items())

    def prepare(self, flat: Arrays) -> None:
        """Look at the parameters again, if any have changed; make those that were deferred."""
        if self.seen == changes.count:
            return
        try:
            for param in self._params.values():
                param._all(param._data)
        except DeferredInitializationError:
            infer_params(self.where, self.trace, self._params, flat)
            for param in self._params.values():
                param._finish_deferred_init()
        self._sites = [site for site in self._sites if self._is_current(site)]
        self.seen = changes.count

    def _is_current(self, site: Site) -> bool:
        """Whether the parameters are still on its context, in the same arrays."""
        there = all(site.ctx in param.list_ctx() for param in self._bound.values())
        return there and site.is_current(self._table(site.ctx))

    def _table(self, ctx: Context) -> dict[str, Any]:
        """The parameters' arrays on a context."""
        return {name: param._check_and_get(param._data, ctx) for name, param in self._bound.items()}

    def _site(self, ctx: Context, given: Arrays) -> Site:
        """The programs on a context; those of a new one are for inputs such as `given`."""
        for site in self._sites:
            if site.ctx is ctx or site.ctx == ctx:
                return site
        made = Site(ctx, self.trace.symbol, self._fed, self._table(ctx), given, self._hook())
        self._sites.append(made)
        return made

    def __call__(self, flat: Arrays) -> list[Any]:
        """The outputs; `flat` are the inputs, all on one context.

        Raises:
            ShapeError, DTypeError: they do not go with the parameters; it names the node.
        """
        given = [flat[k] for k in self._numbers]
        ctx = (given or [x for x in flat if x is not None])[0].context
        if self._computed:
            given += [param.data(ctx) for param in self._computed]
        site = self._sites[0] if len(self._sites) == 1 else self._site(ctx, given)
        if site.ctx is not ctx and site.ctx != ctx:
            site = self._site(ctx, given)
        wanted, places = None, ()
        if mode.recording:
            places = (site.bundle, *[source(x) for x in given])
            wanted = tuple([place is not None for place in places])
            wanted = wanted if True in wanted else None
        if site.is_stepwise or (storage_types.rules and not all(map(in_program, given))):
            return applied(site.symbol._graph, site.named(given), ctx)
        program = site.take(given, wanted)
        lease = Lease(program, site, given)
        outputs = [Array._new(layout, ctx) for layout in program.layouts]
        program.passes.forward_into(given, outputs)
        if wanted is None:
            return outputs
        node = Node(_gradient, places, program.flow, (lease,), [(x._layout, ctx) for x in outputs])
        for k, x in enumerate(outputs):
            put(x, "_tape", Output(node, k))
        return outputs

    def _hook(self) -> OpHook | None:
        """The hook on operators, as executors call it."""
        if self._op_hook is None:
            return None
        callback, everything = self._op_hook
        nodes = {n.name: n.op.name for n in self.trace.symbol._graph.topo if n.op is not None}

        def tell(name: str, array: Any) -> None:
            node = name
            while node not in nodes and "_" in node:
                node = node.rpartition("_")[0]
            callback(name, nodes.get(node, "null"), array)

        return tell, everything


_gradient = BundledCall(gradients)
