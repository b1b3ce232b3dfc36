"""One mode of an executor: its layout, its compiled passes, and how they are pushed.

States: *laid out* (places are decided); each pass is *compiled* when it is first pushed, for good.

Segments that wait for all before write the variable of the arena. Where those of several contexts
run side by side they only read it: each writes a variable of its own, its *turn*, and reads the
turns of those it waits for. Before them the arena and all turns are written, which ends the pass
before, and hands on what failed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gnomon import config, engine
from gnomon.base import Later
from gnomon.engine import Operator, Var
from gnomon.executor import arrays
from gnomon.executor.arena import Arena
from gnomon.executor.inputs import Input
from gnomon.executor.prepared import Prepared
from gnomon.executor.programs.cuts import sending
from gnomon.executor.programs.draws import Draws, Positions
from gnomon.executor.programs.layout import Layout, Mode, Network
from gnomon.executor.programs.program import Builder, Segment, place
from gnomon.executor.programs.resized import laid_out
from gnomon.executor.repush import Moving
from gnomon.executor.train_step import (
    BRIEF,
    Feed,
    Gift,
    Pass,
    Place,
    Pushed,
    Put,
    check_feeds,
    loadable,
)
from gnomon.expr.node import Buffer
from gnomon.ground.collector import resting
from gnomon.runtime.execution.stream import Turn
from gnomon.runtime.kernels.workspace import without_workspace

if TYPE_CHECKING:
    from gnomon.executor.programs import gpu_program
    from gnomon.graph.tasks.task import Task
    from gnomon.runtime.kernels.gpu_kernel import GpuStep
else:  # a process without GPUs loads nothing of them
    gpu_program = Later("gnomon.executor.programs.gpu_program")

Vars = Mapping[int, Var]


class Run:
    """A program of `net` in `arena`; `variables` are those of the caller's buffers, by id.

    `held` are the inputs whose batch lay elsewhere once; it grows.
    """

    def __init__(
        self, net: Network, mode: Mode, arena: Arena, variables: Vars, held: list[Input]
    ) -> None:
        self.mode = mode
        self._net, self._held = net, held
        self.heads = tuple(net.heads)
        self.arena = arena
        self.variables = variables
        self.layout = laid_out(net, mode, Draws(arena.ctx))
        self._draws = len(self.layout.draws)
        place(self.layout, arena)
        self.parts = {
            "forward": slice(0, self.layout.forward),
            "forward again": slice(0, self.layout.repeat),  # states have changed already
            "backward": slice(self.layout.forward, None),
            "forward and backward": slice(0, None),
        }
        self._builder: Builder | gpu_program.Builder = (
            Builder(self.layout, arena, net.handed)
            if self.layout.device.host
            else gpu_program.Builder(self.layout, net.handed)
        )
        self._prepared: Prepared | None = None
        self._apart = not config.get("programs")
        self._positions: Positions | None = None
        self._compiled: dict[tuple[str, bool, int | None], tuple[Segment, ...]] = {}
        self._operators: dict[tuple[str, bool, int | None], list[Operator]] = {}
        self._passes: dict[tuple[str, int | None], Pass | None] = {}
        self._turns: list[Var] = []

    @property
    def held(self) -> int:
        """Bytes that libraries keep for it."""
        return self._builder.held

    def forward(
        self,
        feeds: Sequence[Feed] = (),
        gifts: Sequence[Gift] = (),
        drawn: Positions | None = None,
    ) -> None:
        """Push the forward pass on the elements of `feeds`; `gifts` are copied out behind it.

        Random numbers are those at `drawn`, else the next ones.

        Raises:
            ShapeError: one does not fit; nothing is written.
        """
        if (whole := self._pass("forward")) is None:
            self._begin_apart("forward", feeds, drawn)
            _give(gifts)
        else:
            feeds, puts = self._begun(feeds, drawn)
            whole.push(feeds, puts, gifts)

    def backward_on(self, feeds: Sequence[Feed], gifts: Sequence[Gift]) -> Pushed | None:
        """Push the backward pass, whose forward pass was pushed before and left its values.

        `feeds` are gradients of outputs, and inputs as they were; `gifts` are copied out behind.
        As one short native call it is held back: then it is what is returned.
        """
        if (whole := self._pass("backward")) is None:
            for feed in feeds:
                arrays.assign(*feed)
            for held in self._held:
                held.bring()
            self._push("backward")
            _give(gifts)
            return None
        return whole.push_later(self._natively(feeds), [], gifts)

    def forward_backward(
        self, feeds: Sequence[Feed], gifts: Sequence[Gift] = (), drawn: Positions | None = None
    ) -> Pushed | None:
        """Push both passes; as one train step, which is held back, where they are short and native.

        `gifts` are copied out behind them. Random numbers are those at `drawn`, else the next ones.

        Raises:
            ShapeError: as `forward`.
        """
        if (whole := self._pass("forward and backward")) is None:
            self._begin_apart("forward and backward", feeds, drawn)
            _give(gifts)
            return None
        return whole.push_later(*self._begun(feeds, drawn), gifts)

    def forward_again(self) -> None:
        """Push the forward pass with the same random numbers, leaving states alone."""
        if len(self.layout.draws) and self._positions is None:
            self._positions = self.layout.draws.reserve()
            self._push_positions(self._positions)
        self._push("forward again")

    def draw_as(self, other: Run) -> None:
        """Have `forward_again` draw the numbers that another mode of the program drew last."""
        if self is not other and len(other.layout.draws) == len(self.layout.draws):
            self._positions = other._positions
            if self._positions is not None:
                self._push_positions(self._positions)

    @property
    def left(self) -> Run | None:
        """Whose values are in the arena behind the backward pass: None where it overwrote some."""
        return self if self.layout.keeps_forward else None

    def backward(self) -> None:
        """Push the backward pass, whose forward pass was pushed before."""
        whole = None if self._apart else self._pass("backward")
        if whole is None:
            self._push("backward")
        else:
            whole.push((), [])

    def _begun(
        self, feeds: Sequence[Feed], drawn: Positions | None = None
    ) -> tuple[Sequence[Feed], list[Put]]:
        """For a pass that is one native program: which feeds it begins with, and what is put."""
        prepared = self._prepared
        puts: list[Put] = []
        if feeds:
            feeds = self._natively(feeds)
        if self._draws:
            self._positions = drawn or self.layout.draws.reserve()
            puts.append((self.layout.draws, self._positions))
        if prepared is not None:
            puts.append((prepared, None))
        return feeds, puts

    def _natively(self, feeds: Sequence[Feed]) -> Sequence[Feed]:
        """Those of `feeds` that a native program may begin with; the others are copied now."""
        prepared = self._prepared
        native = [loadable(dest, source) for dest, source in feeds]
        if prepared is not None:
            read = [prepared.reads(arrays.var(dest)) for dest, _ in feeds]
            native = [n and not r for n, r in zip(native, read, strict=True)]
        if all(native):
            return feeds
        check_feeds(feeds)
        apart = len(native) - native[::-1].index(False)  # in order: one may read another's
        for feed in feeds[:apart]:
            arrays.assign(*feed)
        return feeds[apart:]

    def _begin_apart(
        self, name: str, feeds: Sequence[Feed], drawn: Positions | None = None
    ) -> None:
        """Push a pass that is several segments."""
        check_feeds(feeds)
        for feed in feeds:
            arrays.assign(*feed)
        for held in self._held:
            held.bring()
        if self._draws:
            self._positions = drawn or self.layout.draws.reserve()
        if self._prepared is not None:
            self._push_refresh(self._prepared)
        if self._positions is not None:
            self._push_positions(self._positions)
        self._push(name)

    def _pass(self, name: str) -> Pass | None:
        """A pass that is one native program; None where operators on data are between."""
        key = name, sending.nbytes
        try:
            return self._passes[key]
        except KeyError:
            found = self._passes[key] = self._whole(name)
            return found

    def _whole(self, name: str) -> Pass | None:
        segments = self.segments(name)
        self._prepare()
        if len(segments) != 1 or self._apart or (program := segments[0].program) is None:
            return None
        writes = (*self._vars(segments[0].writes).values(), self.arena.var)
        reads = self._vars(segments[0].reads).values()
        before = 0 if self._prepared is None else self._prepared.work
        bound = frozenset(self.variables.values())
        ctx, held, builder = self.arena.ctx, self._held, self._builder
        assert isinstance(builder, Builder)  # who makes native programs
        part = self.parts[name]
        moving = partial(_moving, self._net, builder, held, part)
        leaving = partial(_leaving, self.layout, builder, part)
        return Pass(program, reads, writes, Place(ctx, bound, held, moving, leaving), before)

    def refresh(self) -> None:
        """Make what is made of parameters alone, if it is not; no job may be writing these."""
        self._prepare()
        if self._prepared is not None:
            self._prepared.refresh()

    def _prepare(self) -> None:
        """Compile what is made of parameters alone, if it is not."""
        if self._prepared is not None:
            return
        self._outwait()
        parts = without_workspace(lambda: self._builder.prepare())  # noqa: PLW0108 for mypy
        if parts:
            self._prepared = Prepared((p, self._vars(reads).values()) for p, reads in parts)

    def _outwait(self) -> None:
        """Let programs finish: what is compiled may give the steps of others another workspace."""
        engine.get().let_finish((self.arena.var,))

    def segments(self, name: str, apart: bool = False) -> tuple[Segment, ...]:
        """The segments of a pass, compiled now if they are not; `apart` one for each task."""
        key = name, apart, sending.nbytes
        if key not in self._compiled:
            self._outwait()
            with resting():
                self._compiled[key] = without_workspace(
                    lambda: self._builder.build(self.parts[name], name, apart)
                )
        return self._compiled[key]

    def steps_of(self, task: Task) -> list[GpuStep] | None:
        """The steps of a task of a GPU's program; None where the processor does it."""
        builder = self._builder
        assert not isinstance(builder, Builder)
        return builder.steps_of(task)

    def operators(self, name: str, apart: bool = False) -> list[Operator]:
        """The segments of a pass as the engine takes them."""
        key = name, apart, sending.nbytes
        if key not in self._operators:
            segments, turns = self.segments(name, apart), self._turns
            turns += [Var(f"turn {k}") for k in range(len(turns), len(segments))]
            self._operators[key] = [self._operator(s, k) for k, s in enumerate(segments)]
        return self._operators[key]

    def _operator(self, segment: Segment, number: int) -> Operator:
        """A segment as the engine takes it, with the variables it reads and writes."""
        own, before = self.arena.var, list[Var]()
        if segment.after is not None:
            before = [own, *(self._turns[k] for k in segment.after)]
            own = self._turns[number]
        writes = self._vars(segment.writes)
        writes.update((id(v), v) for v in (own, *segment.variables))
        reads = {id(v): v for v in before} | self._vars(segment.reads)
        reads = {k: v for k, v in reads.items() if k not in writes}
        program = segment.program
        is_brief = segment.after is None or (program is not None and program.work <= BRIEF)
        return engine.get().new_operator(
            _function(segment),
            tuple(reads.values()),
            tuple(writes.values()),
            name=segment.name,
            kind="inline" if segment.native and is_brief else "sync",
        )

    def _vars(self, buffers: Iterable[Buffer]) -> dict[int, Var]:
        found = (self.variables[id(b)] for b in buffers)
        return {id(v): v for v in found}

    def _push(self, name: str) -> None:
        """Push the segments of a pass."""
        current, operators = engine.get(), self.operators(name, self._apart)
        segments = self.segments(name, self._apart)
        if any(segment.after is not None for segment in segments):
            begin = engine.Repeatable(lambda run_ctx: None)
            writes = (self.arena.var, *self._turns)
            current.push_inline(begin, self.arena.ctx, (), writes, name=f"begin {name}")
        for segment, operator in zip(segments, operators, strict=True):
            program = segment.program
            if len(segments) == 1 and program is not None:
                one, both = Turn(program), (operator.const, operator.mutate)
                current.push_inline(one, segment.ctx, *both, name=operator.name)
            else:
                current.push(operator, segment.ctx)

    def _push_refresh(self, prepared: Prepared) -> None:
        refresh = engine.Repeatable(lambda run_ctx: prepared.refresh())
        const = [v for v in prepared.variables if v is not self.arena.var]
        writes = (self.arena.var,)
        engine.get().push_inline(refresh, self.arena.ctx, const, writes, name="prepare parameters")

    def _push_positions(self, positions: Positions) -> None:
        draws: Any = self.layout.draws
        put = engine.Repeatable(lambda run_ctx: draws.put(positions))
        arena = self.arena
        engine.get().push_inline(put, arena.ctx, (), (arena.var,), name="random positions")


def _function(segment: Segment) -> Any:
    """What the engine is given for a run of a segment."""
    if segment.turn is not None:
        return segment.turn
    return (lambda run_ctx: segment.run()) if segment.program is None else Turn(segment.program)


def _give(gifts: Sequence[Gift]) -> None:
    """Copy bound arrays into others."""
    for source, dest in gifts:
        arrays.assign(dest, source)


def _moving(
    net: Network, builder: Builder, held: list[Input], part: slice, given: Input
) -> Moving | None:
    """Where `part` has the place of an input, which is held then; None where that is not clear."""
    home = given.home._address
    leaves = [b for b in (*net.inputs.values(), *net.heads.values()) if b.address == home]
    slots = builder.slots(leaves[0], part) if len(leaves) == 1 else None
    if slots is None:
        return None
    if given not in held:
        held.append(given)
    return Moving(home, slots)


def _leaving(layout: Layout, builder: Builder, part: slice, source: Any) -> Moving | None:
    """Where `part` has the place of an array that it alone writes; None where it is not so."""
    home = source._address
    every = [*(d.dest for d in layout.stores.values()), *(layout.buffers[e] for e in layout.homes)]
    leaves = {id(b): b for b in every if b.address == home}
    if len(leaves) != 1:
        return None
    (leaf,) = leaves.values()
    inside = set(layout.tasks[part])
    if not inside.issuperset(builder.touching(leaf)):
        return None
    slots = builder.slots(leaf, part)
    return Moving(home, slots) if slots else None
