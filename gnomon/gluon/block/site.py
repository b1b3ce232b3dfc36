"""`Site`: a compiled block on one context: its parameters' arrays there, and programs on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon.context import Context
from gnomon.executor.arena import Arena
from gnomon.executor.arrays import in_program
from gnomon.executor.inputs import hidden
from gnomon.executor.network import Bound, shaped_by_values
from gnomon.executor.passes import Passes
from gnomon.executor.programs.cuts import sending
from gnomon.gluon.block.program import Program
from gnomon.graph.gradient import Flow
from gnomon.ndarray.core.array import of_zeros
from gnomon.ndarray.core.bounded_cache import BoundedCache
from gnomon.ndarray.core.layout import dense
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import Bundle, Leaf
from gnomon.ndarray.lazy.gather import gather

KINDS_KEPT = 128  # of inputs, for which there are programs: one for each arena that they work in


class Site:
    """Parameters by name, and programs by the kind of inputs and the working memory they are for.

    Programs for inputs of all kinds take turns in one arena. A call whose backward pass is still to
    come keeps its arena; the next one works in another, with programs of its own. `_free` are the
    arenas that no call keeps.

    `bundle` are the parameters with gradients as one place on the tape; None where there are none.
    """

    def __init__(
        self,
        ctx: Context,
        symbol: Any,
        fed: Sequence[str],
        table: Mapping[str, Any],
        given: Sequence[Any],
        hook: tuple[Callable[..., Any], bool] | None,
    ) -> None:
        self.ctx, self.symbol, self.table = ctx, symbol, dict(table)
        self.fed = fed
        self._hook = hook
        self.names = symbol.list_arguments()
        leaves = {n: table[n]._tape for n in self.names if n in table}
        self.leaves = {n: leaf for n, leaf in leaves.items() if isinstance(leaf, Leaf)}
        self.bundle = Bundle(list(self.leaves.values())) if self.leaves else None
        grads = [leaf.grad for leaf in self.leaves.values()]
        sparse = not all(map(in_program, (*table.values(), *grads)))
        self.is_stepwise = sparse or shaped_by_values(symbol._graph, self.named(given))
        states = symbol.list_auxiliary_states()
        if sending.nbytes is None:  # else they are read one by one, as soon as each is there
            gather(grads)
        gather([table[n] for n in self.leaves])
        gather([table[n] for n in states])
        self._tapes = [x._tape for x in table.values()]
        self._programs: dict[Any, dict[Arena, Program]] = {}
        self._kept = BoundedCache(KINDS_KEPT)
        self._free: list[Arena] = []

    def is_current(self, table: Mapping[str, Any]) -> bool:
        """Whether the arrays of parameters, and their gradients, are still these."""
        if any(array is not self.table[name] for name, array in table.items()):
            return False
        tapes = zip(table.values(), self._tapes, strict=True)
        return all(x._tape is tape for x, tape in tapes)

    def named(self, given: Sequence[Any]) -> dict[str, Any]:
        """All arguments by name."""
        return {**self.table, **dict(zip(self.fed, given, strict=True))}

    def take(self, given: Sequence[Any], wanted: tuple[bool, ...] | None) -> Program:
        """A program for such inputs, until it is given back.

        `wanted` says whether gradients of the parameters, and of each input, are; None where it is
        not recorded.
        """
        kind = (mode.training, wanted, *[x._layout for x in given])
        programs, arena = self._programs.get(kind, {}), self._arena()
        found = programs.get(arena)
        if found is None:
            try:
                found = programs[arena] = self._made(given, wanted, arena)
            except BaseException:
                self._free.append(arena)
                raise
            self._kept.put(self._programs, kind, programs)
        return found

    def give_back(self, program: Program) -> None:
        """Leave what `take` gave to others."""
        self._free.append(program.passes.arena)

    def _arena(self) -> Arena:
        """One that no call keeps, and in which nothing has failed."""
        while self._free:
            try:
                arena = self._free.pop()
            except IndexError:  # another thread was faster
                break
            if arena.var.failure is None:
                return arena
            for programs in list(self._programs.values()):
                programs.pop(arena, None)
        return Arena(self.ctx)

    def _made(self, given: Sequence[Any], wanted: Sequence[bool] | None, arena: Arena) -> Program:
        """A new program; gradients of parameters go where those belong."""
        args, grads, requests = dict(self.table), dict[str, Any](), dict[str, str]()
        for k, (name, array) in enumerate(zip(self.fed, given, strict=True)):
            shape, dtype = array.shape, array._dtype
            args[name] = hidden(of_zeros(shape, dtype, self.ctx))
            if wanted is not None and wanted[k + 1]:
                grads[name], requests[name] = of_zeros(shape, dtype, self.ctx), "write"
        if wanted is not None and wanted[0]:
            for name, leaf in self.leaves.items():
                grads[name], requests[name] = leaf.grad, leaf.req
        bound = Bound(
            [args[n] for n in self.names],
            [grads.get(n) for n in self.names],
            [args[n] for n in self.symbol.list_auxiliary_states()],
            [requests.get(n, "null") for n in self.names],
        )
        feeds = [args[n] for n in self.fed]
        passes = Passes(self.symbol, self.ctx, bound, feeds, mode.training, arena)
        if self._hook is not None:
            passes.set_monitor_callback(*self._hook)
        layouts = [dense(x.shape, x._dtype) for x in passes.outputs]
        order = [self.names.index(n) for n in self.fed]
        flow = Flow(tuple(wanted or ()), changes=True)  # its losses give gradients of themselves
        return Program(passes, layouts, order, flow)
