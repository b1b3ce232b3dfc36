"""Spreading: the phases of a kernel become a grid program, by threads and groups of a GPU.

A group is a part of a warp, a warp, or all of a block of several. It folds by shuffles, then, if it
is more than a warp, by way of shared memory in the order of the warps: the same sizes give the same
sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena, Term, mask_of
from gnomon.plan import ir
from gnomon.plan.gpu.grid import (
    BLOCK,
    MANY,
    SHARED_SLOT,
    WARP,
    Accumulator,
    Area,
    Barrier,
    Body,
    Combine,
    Elements,
    Entry,
    Fetch,
    Grid,
    Join,
    Kind,
    Loop,
    Result,
    Set,
    Share,
    Shuffle,
    When,
    Wide,
    register,
)
from gnomon.plan.gpu.group_scan import WARPS, GroupScan
from gnomon.plan.gpu.group_sort import KEYS, GroupSort
from gnomon.plan.gpu.hold import Pieces, held
from gnomon.plan.gpu.tile import tiles
from gnomon.plan.gpu.wide import Moves, moves, row_moves, shared_width
from gnomon.plan.ir import Fold, Kernel, Let, Phase, reducer_of
from gnomon.plan.terms import postorder

HALVES = (16, 8, 4, 2, 1)  # the distances at which the threads of a group join what they have


def spread(kernel: Kernel) -> Grid:
    """The grid program of a kernel."""
    return Grid(kernel, [_Spreader(kernel.arena, phase).entry() for phase in kernel.phases])


class _Spreader:
    """One phase."""

    def __init__(self, arena: Arena, phase: Phase) -> None:
        self.arena, self.phase = arena, phase
        self.row_folds = [s for s in phase.row if isinstance(s, Fold)]
        self.joint = [s for s in phase.body if isinstance(s, Fold) and s.vector]
        by_rows = self.row_folds or phase.ordered
        self.sorts = any(isinstance(s, Let) and s.term.op == "sort" for s in phase.body)
        self.kind: Kind = "elements" if self.joint else "rows" if by_rows else "threads"
        self.folding = any(isinstance(s, Fold) for s in phase.body) and not self.joint
        self.together = {t.id for s in (*self.row_folds, *self.joint) for t in s.terms}
        self.accumulators = self.shared = 0
        self.width = 1 if self.sorts else shared_width(self.along_rows())
        self.zero, self.one = arena.const(0), arena.const(1)
        self.mine, self.group = register(arena, "tid.x"), register(arena, "ntid.x")
        self.task = register(arena, "ctaid.x") * register(arena, "ntid.y")
        self.task = self.task + register(arena, "tid.y")

    def entry(self) -> Entry:
        """The phase as an entry."""
        arena, variables = self.arena, self.spread_variables()
        items = self.count(variables)
        block = register(arena, "ctaid.x")
        if self.kind == "threads":
            first, count = block * self.group + self.mine, self.group
        else:
            first, count = self.task, register(arena, "ntid.y")
        step = register(arena, "nctaid.x") * count
        found = self.moves(variables)
        if self.sorts:
            loops = self.sorted(variables, items)
        elif found is not None:
            loops = self.wide_loops(found, items, first, step)
            self.width = found.width if not self.folding else 1
        else:
            item = self.in_turn(self.phase.turns, self.turn())
            loops = [Loop(variables, first, items, step, item)]
        by_turns = self.kind == "rows" and self.width > 1 and not self.phase.ordered
        row = held(arena, self.phase) if by_turns else None
        if row is not None:
            pieces = Pieces(row, self.width, self.accumulator)
            by_registers = Loop(variables, first, items, step, self.held_row(pieces))
            loops = [When(pieces.fit, [by_registers]), When(~pieces.fit, loops)]
        tiled = tiles(arena, self.phase) if self.kind == "threads" else None
        if tiled is not None:
            self.shared = tiled.shared
            by_tiles = tiled.body(self.accumulator)
            loops = [When(tiled.large, by_tiles), When(~tiled.large, loops)]
        body = [*self.body(self.phase.entry), *loops]
        return Entry(self.kind, items, self.length(), self.task, body, self.shared, self.width)

    def moves(self, variables: Sequence[int]) -> Moves | None:
        """How a thread takes several elements of a row at once, where that is worth it."""
        inner = self.phase.inner
        if self.kind != "threads" or inner is None or inner not in variables:
            return None
        return moves(self.arena, self.phase.body, inner)

    def wide_loops(self, found: Moves, items: Term, first: Term, step: Term) -> Body:
        """Whole pieces of `width` elements of all rows, then what is left of each row.

        That is all of it where memory does not lie so that pieces can be moved; and where each
        element is a fold of many, unless enough threads are busy with pieces of them.
        """
        arena, phase, inner = self.arena, self.phase, self.phase.inner
        assert inner is not None
        extent, width = arena.extent[inner], found.width
        enough = arena.const(MANY) <= items if self.folding else arena.const(True, dt.bool_)
        whole = arena.select(
            found.aligned & enough, arena.op("idiv", extent, arena.const(width)), self.zero
        )
        loops: Body = []
        for before, count, each in (
            (self.zero, whole, width),
            (whole * width, extent - whole * width, 1),
        ):
            piece = arena.var(count)
            at = before + piece * each
            inside: Body = [Wide(inner, at, each, found.keys, [Elements(phase.body)])]
            item = self.in_turn(phase.turns, [*self.body(phase.row), *inside])
            variables = (*phase.rows, piece.payload)
            loops.append(Loop(variables, first, self.count(variables), step, item))
        return loops

    def spread_variables(self) -> tuple[int, ...]:
        """The variables whose combinations are the items of work."""
        rows, inner = self.phase.rows, self.phase.inner
        by_rows = self.row_folds or inner is None or self.phase.ordered
        return rows if by_rows or inner is None else (*rows, inner)

    def count(self, variables: Sequence[int]) -> Term:
        """How many combinations of variables there are."""
        total = self.one
        for v in variables:
            total = total * self.arena.extent[v]
        return total

    def length(self) -> Term | None:
        """The most elements that a group shares, of a fold or a row, where sizes alone tell."""
        if self.kind == "threads":
            return None
        longest, inner = self.one, self.phase.inner
        shared = [fold.vars for fold in (*self.row_folds, *self.joint)]
        if self.kind == "rows" and inner is not None:
            shared.append((inner,))
        for variables in shared:
            count = self.count(variables)
            if count.free:
                return None
            longest = self.arena.op("max", longest, count)
        return longest

    def in_turn(self, variables: Sequence[int], inside: Body) -> Body:
        """`inside` for every combination of the variables, in order, the last one fastest."""
        for v in reversed(variables):
            inside = [self.every(v, inside)]
        return inside

    def every(self, variable: int, body: Body) -> Loop:
        """A loop of a thread on its own."""
        return Loop((variable,), self.zero, self.arena.extent[variable], self.one, body)

    def turn(self) -> Body:
        """What is done for one item in one turn."""
        phase, inner = self.phase, self.phase.inner
        if phase.ordered:
            return [*self.body(phase.row), *self.scanned()]
        row, element = self.body(phase.row), self.element()
        if inner is None or inner in self.spread_variables():
            return [*row, *([Elements(phase.body)] if self.kind == "threads" else element)]
        if self.kind == "elements":  # the group goes through the row together
            return [*row, self.every(inner, element)]
        return [*row, *self.through(inner)]

    def along_rows(self) -> list[tuple[int, ir.Body]]:
        """The loops that a group shares, by their only variable, and what is done in them.

        None where one has several: threads would not find there what they keep here.
        """
        folds = [*self.row_folds, *self.joint]
        if any(len(fold.vars) - self.alone(fold) > 1 for fold in folds):
            return []
        loops: list[tuple[int, ir.Body]] = [(fold.vars[-1], [fold]) for fold in folds]
        if self.kind == "rows" and self.phase.inner is not None:
            loops.append((self.phase.inner, self.phase.body))
        return loops

    def scanned(self) -> Body:
        """A row that is gone through in order."""
        self.shared = max(self.shared, WARPS.size * WARPS.places)
        return GroupScan(self.arena, self.phase, self.width, self.accumulator).row(self.body)

    def sorted(self, variables: tuple[int, ...], items: Term) -> Body:
        """Sort all rows."""
        self.shared = max(self.shared, KEYS.size * KEYS.places)
        sort = GroupSort(self.arena, self.phase, self.accumulator, self.body)
        return sort.loops(variables, items)

    def element(self) -> Body:
        """The statements of an element; what its folds do not need is the group's first thread's.

        So nothing is read by one thread that another one is about to store.
        """
        body = self.phase.body
        if self.kind != "elements":
            return self.body(body)
        last = max(k for k, s in enumerate(body) if isinstance(s, Fold) and s.vector)
        folds = [t for s in body[: last + 1] if isinstance(s, Fold) for t in s.terms]
        needed = {t.id for t in postorder(folds)}
        ours: ir.Body = []
        theirs: ir.Body = []
        for k, stmt in enumerate(body):
            early = isinstance(stmt, Let) and stmt.term.id in needed
            shared = k <= last and (early or isinstance(stmt, Fold))
            (theirs if shared else ours).append(stmt)
        return [*self.body(theirs), When(self.mine.eq(self.zero), self.body(ours))]

    def body(self, body: ir.Body) -> Body:
        """Statements of a loop nest, the folds of a group's threads written out."""
        found: Body = []
        for stmt in body:
            if not isinstance(stmt, Fold):
                found.append(stmt)
                continue
            shared = [t for t in stmt.terms if t.id in self.together]
            alone = [t for t in stmt.terms if t.id not in self.together]
            found += [Fold(alone, stmt.bodies, stmt.vector)] if alone else []
            found += self.folded(stmt, shared) if shared else []
        return found

    # -- folds of a group -----------------------------------------------------------------------

    def accumulator(self, dtypes: tuple[dt.DType, ...]) -> Accumulator:
        """A new one."""
        self.accumulators += 1
        return Accumulator(self.accumulators, dtypes)

    def held_row(self, pieces: Pieces) -> Body:
        """A row in registers; what is left of it after whole pieces goes by way of memory."""
        phase, row = self.phase, pieces.row
        assert phase.inner is not None
        last = pieces.loop(len(row.folds), list(row.puts))
        return [*self.row_of_pieces(pieces), *last, self.rest(phase.inner, list(phase.body))]

    def through(self, inner: int) -> Body:
        """The elements of a row by the threads of a group."""
        element = self.body(self.phase.body)
        if self.width == 1:
            return [Loop((inner,), self.mine, self.arena.extent[inner], self.group, element)]
        found = row_moves(self.arena, self.phase.body, inner, self.width)
        return self.pieces(inner, found, element, element)

    def row_of_pieces(self, pieces: Pieces) -> Body:
        """What is done once for a row that is held."""
        found: Body = []
        number = 0
        for stmt in self.phase.row:
            if isinstance(stmt, Fold):
                found += self.folded(stmt, stmt.terms, (pieces, number))
                number += 1
            else:
                found.append(stmt)
        return found

    def folded(
        self, fold: Fold, terms: Sequence[Term], held: tuple[Pieces, int] | None = None
    ) -> Body:
        """Folds in one loop by all threads of a group, each of which knows the results.

        The loop is a numbered one of a row that is held, or goes through memory.
        """
        begin: Body = []
        steps: list[Combine] = []
        after: Body = []
        for term in terms:
            reducer = reducer_of(term)
            dtypes = reducer.dtypes(tuple(a.dtype for a in term.args))
            starts = zip(reducer.start(term.args[0].dtype), dtypes, strict=True)
            into = self.accumulator(dtypes)
            begin.append(Set(into, tuple(self.arena.const(n, dtype) for n, dtype in starts)))
            steps.append(Combine(reducer, into, term.args))
            after += [*self.across(reducer, into), Result(term, into)]
        if held is None:
            return [*begin, *self.nest(fold, self.alone(fold), steps), *after]
        pieces, number = held
        operands = iter(pieces.row.folds[number])
        joins: Body = [
            Join(s.reducer, s.into, tuple(next(operands) for _ in terms_of(s))) for s in steps
        ]
        rest = self.rest(fold.vars[0], [*fold.bodies[0], *steps])
        return [*begin, *pieces.loop(number, joins), rest, *after]

    def alone(self, fold: Fold) -> int:
        """How many outer variables each thread goes through; the group shares the ones below.

        Those are taken as one, unless something is computed between their loops.
        """
        alone = len(fold.vars) - 1
        while alone > 0 and not any(isinstance(s, Fold) for s in fold.bodies[alone - 1]):
            below = (self.arena.extent[v].free for v in fold.vars[alone:])
            if any(free & mask_of(fold.vars[alone - 1 :]) for free in below):
                break
            alone -= 1
        return alone

    def nest(self, fold: Fold, alone: int, steps: Sequence[Combine]) -> Body:
        """The loops of a fold."""
        shared = fold.vars[alone:]
        inside = [s for body in fold.bodies[alone:] for s in self.body(body)]
        body: Body
        if self.width == 1 or len(shared) > 1:
            whole = self.count(shared)
            body = [Loop(shared, self.mine, whole, self.group, [*inside, *steps])]
        else:
            found = row_moves(self.arena, [fold], shared[0], self.width)
            joins = [Join(s.reducer, s.into, terms_of(s)) for s in steps]
            body = self.pieces(shared[0], found, [*inside, *joins], [*inside, *steps])
        for v, before in reversed(list(zip(fold.vars[:alone], fold.bodies, strict=False))):
            body = [self.every(v, [*self.body(before), *body])]
        return body

    def pieces(self, variable: int, found: Moves, several: Body, one: Body) -> Body:
        """`several` for whole pieces of `width` elements, `one` for each that is left of a row.

        Which thread has which does not depend on where memory lies.
        """
        arena, width = self.arena, found.width
        piece = arena.var(arena.extent[variable] // width)
        inside = Wide(variable, piece * width, width, found.keys, several, found.aligned)
        count = arena.extent[piece.payload]
        loop = Loop((piece.payload,), self.mine, count, self.group, [inside])
        return [loop, self.rest(variable, one)]

    def rest(self, variable: int, body: Body) -> Loop:
        """`body` for each element that is left of a row after whole pieces."""
        arena = self.arena
        extent = arena.extent[variable]
        begin = extent // self.width * self.width
        left = arena.var(extent - begin)
        inside = Wide(variable, begin + left, 1, {}, body)
        count = arena.extent[left.payload]
        return Loop((left.payload,), self.mine, count, self.group, [inside])

    def across(self, reducer: Reducer, into: Accumulator) -> Body:
        """What the threads of a group have, as one; every thread gets it."""
        other = self.accumulator(into.dtypes)
        body: Body = []
        for distance in HALVES:
            step: Body = [Shuffle(other, into, "down", distance), Combine(reducer, into, other)]
            body.append(When(self.arena.const(distance) < self.group, step))
        body.append(Shuffle(into, into, "idx", 0))
        many = self.arena.const(WARP) < self.group
        return [*body, When(many, self.across_warps(reducer, into, other))]

    def across_warps(self, reducer: Reducer, into: Accumulator, other: Accumulator) -> Body:
        """Combines the warps' values by way of shared memory, in the order of the warps."""
        warps = BLOCK // WARP
        area = Area(0, SHARED_SLOT, len(into.dtypes) * warps)
        self.shared = max(self.shared, area.size * area.places)
        count = self.arena.op("idiv", self.group, self.arena.const(WARP))
        next_one = self.arena.var(warps)
        rest = Loop(
            (next_one.payload,),
            self.one,
            count,
            self.one,
            [Fetch(other, area, next_one), Combine(reducer, into, other)],
        )
        return [
            Barrier(),  # what was there before has been read
            Share(into, area, self.arena.op("idiv", self.mine, self.arena.const(WARP))),
            Barrier(),
            Fetch(into, area, self.zero),
            rest,
        ]


def terms_of(step: Combine) -> tuple[Term, ...]:
    """The values that a step of a fold takes, which are Terms."""
    assert isinstance(step.values, tuple)
    return step.values
