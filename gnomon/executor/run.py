"""One mode of an executor: its layout, its compiled passes, and how they are pushed.

States: *laid out* (places are decided), then *compiled* at the first push, for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gnomon import engine
from gnomon.engine import Operator, Var
from gnomon.executor.arena import Arena
from gnomon.executor.draws import Draws, Positions
from gnomon.executor.layout import Mode, Network, lay_out
from gnomon.executor.program import Passes, Segment, build, place
from gnomon.expr.node import Buffer

Vars = Mapping[int, Var]
Passed = tuple[list[Operator], list[Operator]]  # forward, backward


class Run:
    """A program of `net` in `arena`; `variables` are those of the caller's buffers, by id."""

    def __init__(self, net: Network, mode: Mode, arena: Arena, variables: Vars) -> None:
        self.mode = mode
        self.arena = arena
        self.variables = variables
        self.layout = lay_out(net, mode, Draws(arena.ctx))
        place(self.layout, arena)
        self.passes: Passes | None = None
        self._states: dict[object, object] = {}
        self._operators: Passed = ([], [])
        self._parts: Passed | None = None
        self._positions: Positions | None = None

    def forward(self, again: bool = False) -> None:
        """Push the forward pass; `again` with the same random numbers as the last time."""
        self.compile()
        if len(self.layout.draws) and (self._positions is None or not again):
            self._positions = self.layout.draws.reserve()
            self._push_positions(self._positions)
        self._push(self._operators[0])

    def backward(self) -> None:
        """Push the backward pass, whose forward pass was pushed before."""
        self.compile()
        self._push(self._operators[1])

    def compile(self) -> Passes:
        """The passes, compiled now if they are not."""
        if self.passes is None:
            self.passes = build(self.layout, self._states)
            first, second = self.passes.forward, self.passes.backward
            self._operators = self._operators_of(first), self._operators_of(second)
        return self.passes

    def parts(self) -> Passed:
        """The passes with each task on its own, to be looked at in between."""
        if self._parts is None:
            apart = build(self.layout, self._states, apart=True)
            first, second = apart.forward, apart.backward
            self._parts = self._operators_of(first), self._operators_of(second)
        return self._parts

    def _operators_of(self, segments: Sequence[Segment]) -> list[Operator]:
        return [self.operator(s) for s in segments]

    def operator(self, segment: Segment) -> Operator:
        """A segment as the engine takes it, with the variables it reads and writes."""
        writes = self._vars(segment.writes)
        writes.update((id(v), v) for v in (self.arena.var, *segment.variables))
        reads = {k: v for k, v in self._vars(segment.reads).items() if k not in writes}
        run = segment.run
        return engine.get().new_operator(
            lambda run_ctx: run(),
            tuple(reads.values()),
            tuple(writes.values()),
            name=segment.name,
            kind="inline" if segment.native else "sync",
        )

    def _vars(self, buffers: Iterable[Buffer]) -> dict[int, Var]:
        found = (self.variables[id(b)] for b in buffers)
        return {id(v): v for v in found}

    def _push(self, operators: Sequence[Operator]) -> None:
        current = engine.get()
        for operator in operators:
            current.push(operator, self.arena.ctx)

    def _push_positions(self, positions: Positions) -> None:
        draws: Any = self.layout.draws
        engine.get().push_inline(
            lambda run_ctx: draws.put(positions), self.arena.ctx, (), (self.arena.var,)
        )
