"""Train steps: a pass as one native call, with its batch before it and the weights' update behind.

A train step is pushed *held back*: until the engine is asked for something, an update may still
join it, and both become one call. Only the timing shows it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from gnomon import engine
from gnomon.context import Context
from gnomon.engine import Var
from gnomon.engine.job import Job
from gnomon.executor import arrays
from gnomon.executor.inputs import Copy, Input, own
from gnomon.executor.repush import Moved, Moving, repush
from gnomon.runtime.execution.program import Done, PassProgram, Program, Step
from gnomon.runtime.execution.stream import WOKEN, Pair, Task

BRIEF = 3_000_000  # work (see `division.GRAIN`) for which others may well wait: some 100 us
KEPT = 8  # programs of a pass: with and without a batch, and for each of a few updates


class Putting(Protocol):
    """What sets numbers or addresses that differ from run to run."""

    def put(self, value: Any) -> None:
        """Set what the next run reads."""

    def pairs(self, value: Any) -> list[Pair] | None:
        """What `put` puts where, for the stream; None where it does more than that."""


Put = tuple[Putting, Any]
Feed = tuple[Any, Any]  # the array that is bound, and the one whose elements it gets
Gift = tuple[Any, Any]  # the array that is bound, and a new dense one that gets its elements
Vars = tuple[Var, ...]


class Follower(Putting, Protocol):
    """What may follow a train step in the same native call: native work and what it touches."""

    @property
    def step(self) -> Step:
        """The work; it is the caller's alone."""

    @property
    def reads(self) -> Sequence[Var]:
        """The variables of what it reads."""

    @property
    def writes(self) -> Sequence[Var]:
        """The variables of what it writes."""


class Joined(NamedTuple):
    """Passes as one program; `taken` are all of its variables."""

    program: PassProgram
    const: tuple[Var, ...]
    mutate: tuple[Var, ...]
    taken: frozenset[Var]

    def touched(self, reads: Iterable[Var], gifts: Sequence[Gift]) -> tuple[Vars, Vars]:
        """The variables of a run that also reads `reads`, and those that it writes, as gifts too.

        What is written is not among those that are read, even where both are done.
        """
        const, mutate = self.const, self.mutate
        written = {x._chunk for _, x in gifts}
        more = {*reads} - self.taken - written
        if not written.isdisjoint(self.taken):
            const = tuple([v for v in const if v not in written])
            written.difference_update(mutate)
        return (*const, *more), (*mutate, *written)


def joined(steps: Iterable[Step], reads: Iterable[Var], writes: Iterable[Var], name: str) -> Joined:
    """Steps as one program, and its variables, each either read or written."""
    mutate = dict.fromkeys(writes)
    const = dict.fromkeys(v for v in reads if v not in mutate)
    taken = frozenset((*const, *mutate))
    program = PassProgram(steps, name)
    program.kept_tasks()
    return Joined(program, (*const,), (*mutate,), taken)


class TrainStep:
    """One run: `puts` set what differs from run to run. Called again, it goes on where it was.

    `moved` are inputs and outputs that lie elsewhere in this run, and where.
    """

    __slots__ = ("done", "gives", "keep", "loads", "moved", "program", "puts")

    resumable = True

    def __init__(
        self,
        program: Program,
        puts: list[Put],
        loads: tuple[Copy, ...],
        gives: tuple[Copy, ...],
        moved: list[Moved],
        keep: Any,
    ) -> None:
        self.program, self.puts, self.loads, self.gives, self.moved, self.keep = (
            program, puts, loads, gives, moved, keep,
        )  # fmt: skip
        self.done: Done = []

    def __call__(self, run_ctx: Any) -> None:
        if not self.done:
            for putting, value in self.puts:
                putting.put(value)
        if not self.moved:
            self.program.run_once(self.done)
            return
        try:
            for moving, address in self.moved:
                moving.put(address)
            self.program.run_once(self.done)
        finally:
            for moving, _ in self.moved:
                moving.put(moving.home)

    @property
    def is_long(self) -> bool:
        """Whether it is worth to be run behind the program."""
        return self.program.is_long

    def pairs(self) -> list[Pair] | None:
        """What `puts` put where; None where something is to be made by Python before."""
        pairs: list[Pair] = []
        for putting, value in self.puts:
            if (found := putting.pairs(value)) is None:
                return None
            pairs += found
        return pairs

    def task(self) -> Task | None:
        """It as a task of the stream; None where something is to be made by Python before."""
        before = self.pairs()
        after: list[Pair] = []
        if before is None:
            return None
        for moving, address in self.moved:
            before += moving.pairs(address)
            after += moving.pairs(moving.home)
        return Task(self.program, before, after, self.keep)


class Place(NamedTuple):
    """What a pass knows of its executor: where it is, all variables of its arrays, inputs whose
    batch lay elsewhere once, and how to find where the program has the place of an input, or of an
    array that it writes."""

    ctx: Context
    bound: frozenset[Var]
    held: list[Input]
    moving: Callable[[Input], Moving | None]
    leaving: Callable[[Any], Moving | None]


class Pass:
    """A native program of an executor, its variables, and the programs it is part of.

    `place` are the inputs of that executor, and `before` is the most work that what is put may do
    before the program.
    """

    def __init__(
        self,
        program: Program,
        reads: Iterable[Var],
        writes: Iterable[Var],
        place: Place,
        before: int = 0,
    ) -> None:
        self.ctx = place.ctx
        self._place, self._held = place, place.held
        self._brief = BRIEF - before
        self._own = own = joined([program], reads, writes, program.name)
        self._alone = own.program, own.const, own.mutate
        self._copies: dict[tuple[int, bool], Copy] = {}
        self._moving: dict[Input, Moving | None] = {}
        self._leaving: dict[int, Moving | None] = {}
        self._joined: dict[tuple[object, ...], Joined] = {(): self._own}

    def push(self, feeds: Sequence[Feed], puts: list[Put], gifts: Sequence[Gift] = ()) -> None:
        """Push a train step that begins by copying `feeds`, and ends by copying `gifts`."""
        if feeds or puts or gifts or self._held:
            self._push(*self._made(feeds, puts, gifts))
            return
        program, const, mutate = self._alone
        if not program.spare or not repush.way(program, const, mutate, [], [], None):
            enter(TrainStep(program, [], (), (), [], None), self.ctx, const, mutate, self._brief)

    def _push(self, made: TrainStep, const: Vars, mutate: Vars) -> None:
        push(made, self.ctx, const, mutate, self._brief)

    def push_later(
        self, feeds: Sequence[Feed], puts: list[Put], gifts: Sequence[Gift] = ()
    ) -> Pushed:
        """As `push`, but held back where the stream is not woken for it."""
        made, const, mutate = self._made(feeds, puts, gifts)
        if made.program.expected >= WOKEN:
            self._push(made, const, mutate)
            return Pushed(self)
        job = engine.get().push_later(made, self.ctx, const, mutate, made.program.name)
        return Pushed(self, job)

    def _made(
        self, feeds: Sequence[Feed], puts: list[Put], gifts: Sequence[Gift] = ()
    ) -> tuple[TrainStep, Vars, Vars]:
        """A train step, the variables that it reads, and those that it writes."""
        loads, fed, more = [], [], []
        moved: list[Moved] = []
        for dest, source in feeds:
            pending, chunk, address = dest._pending_in, source._chunk, source._address
            more.append(chunk)
            moving = None if pending is None else self._moved(pending, chunk, source)
            if moving is not None:
                fed.append(pending)
                if moving.count:
                    moved.append((moving, address))
            else:
                bound = own(dest)
                load = self._copies.get((id(bound), False)) or self._copy(bound, False)
                loads.append(load)
                puts.append((load, address))
        held = self._held
        if len(held) > len(fed):
            for other in held:
                if other.source is not None and other not in fed:
                    other.bring()
        key = tuple(loads)
        gives = self._given(gifts, puts, moved, more)
        whole = self._joined.get((*key, *gives)) or self._of(key, gives)
        const, mutate = whole.touched(more, gifts)
        return TrainStep(whole.program, puts, key, gives, moved, (feeds, gifts)), const, mutate

    def _given(
        self,
        gifts: Sequence[Gift],
        puts: list[Put],
        moved: list[Moved],
        fed: Sequence[Var],
    ) -> tuple[Copy, ...]:
        """The copies of what the program cannot write where it belongs, or still reads there."""
        gives: list[Copy] = []
        for source, dest in gifts:
            key = id(source)
            try:
                leaving = self._leaving[key]
            except KeyError:
                leaving = self._leaving[key] = self._place.leaving(source)
            if leaving is not None and dest._chunk not in fed:
                moved.append((leaving, dest._address))
            else:
                give = self._copies.get((key, True)) or self._copy(source, True)
                gives.append(give)
                puts.append((give, dest._address))
        return tuple(gives)

    def _moved(self, pending: Any, chunk: Any, source: Any) -> Moving | None:
        """Where the program may be told that a hidden input lies at `source`; else it is copied."""
        if type(pending) is not Input:
            return None
        moving = None
        if not chunk.shared and chunk not in self._place.bound:
            try:
                moving = self._moving[pending]
            except KeyError:
                moving = self._moving[pending] = self._place.moving(pending)
        if moving is None:
            pending.forget()
        elif pending.chunk is not chunk or pending.offset != source._offset:
            pending.hold(source)
        return moving

    def follow(self, before: TrainStep, job: Any, after: Follower, numbers: Any) -> bool:
        """Push `after` in one call with the step before, if that is still held back."""
        if not engine.get().is_held_back(job):
            return False
        behind: tuple[Copy | Follower, ...] = (*before.gives, after)
        whole = self._joined.get((*before.loads, *behind)) or self._of(before.loads, behind)
        puts, (feeds, gifts) = [*before.puts, (after, numbers)], before.keep
        const, mutate = whole.touched([x._chunk for _, x in feeds], gifts)
        program, loads, gives, moved = whole.program, before.loads, before.gives, before.moved
        made = TrainStep(program, puts, loads, gives, moved, before.keep)
        held = engine.get().hold_instead(job, made, const, mutate, program.name)
        if held is None:
            return False
        push(made, self.ctx, const, mutate, self._brief, held)
        return True

    def _copy(self, bound: Any, gives: bool) -> Copy:
        found = self._copies[id(bound), gives] = Copy(bound, gives)
        return found

    def _of(self, loads: tuple[Copy, ...], behind: Sequence[Copy | Follower]) -> Joined:
        """The program of `loads`, this pass, and what comes behind."""
        key = (*loads, *behind)
        found = self._joined.get(key)
        if found is None:
            own, after = self._own, [x for x in behind if not isinstance(x, Copy)]
            steps = [*(x.step for x in loads), own.program, *(x.step for x in behind)]
            reads = [*own.const, *(v for x in after for v in x.reads)]
            reads += [x.var for x in behind if isinstance(x, Copy)]
            writes = [*own.mutate, *(x.var for x in loads), *(v for x in after for v in x.writes)]
            if len(self._joined) >= KEPT:
                self._joined = {(): own}
            name = f"{own.program.name} and update" if after else own.program.name
            found = self._joined[key] = joined(steps, reads, writes, name)
        return found


class Pushed:
    """A train step of a pass, held back where there is a job; nothing is kept once it is done."""

    __slots__ = ("_job", "of")

    def __init__(self, of: Pass, job: Any = None) -> None:
        self.of, self._job = of, None if job is None else weakref.ref(job)

    @property
    def step(self) -> TrainStep | None:
        """The step; None where it is done."""
        job = None if self._job is None else self._job()
        return None if job is None else job.fn

    def follow(self, after: Follower, numbers: Any) -> bool:
        """Push `after` in one call with the step, if that is still held back."""
        job = None if self._job is None else self._job()
        return job is not None and self.of.follow(job.fn, job, after, numbers)


def push(
    made: TrainStep,
    ctx: Context,
    const: Vars,
    mutate: Vars,
    brief: int = BRIEF,
    held: Job | None = None,
) -> None:
    """Push a train step again where it went behind the program; else as the engine has it.

    `held` is the engine's job of it that is held back, if any.
    """
    program = made.program
    before = made.pairs() if program.is_long and program.kept_tasks() else None
    if before is None or not repush.way(program, const, mutate, before, made.moved, held):
        enter(made, ctx, const, mutate, brief, held)


def enter(
    made: TrainStep, ctx: Context, const: Vars, mutate: Vars, brief: int, held: Job | None = None
) -> None:
    """Push a train step as the engine has it: one of at most `brief` work, for which others may
    well wait, runs under the engine's lock."""
    current, program = engine.get(), made.program
    is_brief = program.work <= brief and not program.is_long
    if held is not None:
        current.push_held(held, is_brief)
        return
    way = current.push_brief if is_brief else current.push_inline
    way(made, ctx, const, mutate, name=program.name)


def loadable(dest: Any, source: Any) -> bool:
    """Whether `source` is an array that can be copied into `dest` byte by byte, natively."""
    if not arrays.is_here(source):
        return False
    layout, pending = dest._layout, dest._pending_in
    if source._layout is not layout or layout.strides is not None or not layout.size:
        return False
    mine = (pending.home if type(pending) is Input else dest)._chunk
    theirs = source._chunk
    return theirs is not mine and (theirs.ctx is mine.ctx or theirs.ctx == mine.ctx)


def check_feeds(feeds: Sequence[Feed]) -> None:
    """Raises ShapeError where an array does not fit the one that gets its elements."""
    for dest, value in feeds:
        arrays.check("forward", "feeds", dest, value)
