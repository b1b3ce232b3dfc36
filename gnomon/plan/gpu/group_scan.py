"""Scans of rows by groups of threads: piece by piece, each thread a few elements side by side.

First each thread joins its elements, then what they come to with those of the threads 1, 2, 4 ...
before it in its warp. Then it joins the warps before its own, by shared memory, and all pieces
before this one; from there on it goes through its elements once more.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term
from gnomon.plan import ir
from gnomon.plan.gpu.grid import (
    BLOCK,
    SHARED_SLOT,
    WARP,
    Accumulator,
    Area,
    Barrier,
    Body,
    Combine,
    Fetch,
    Join,
    Loop,
    Result,
    Running,
    Set,
    Share,
    Shuffle,
    When,
    Wide,
    register,
)
from gnomon.plan.gpu.wide import row_moves
from gnomon.plan.ir import Let, Phase

WARPS = Area(0, SHARED_SLOT, BLOCK // WARP)  # what the elements of each warp come to
STEPS = (1, 2, 4, 8, 16)


class GroupScan:
    """The only scan of a phase, `width` elements of a thread at once.

    Its reducer must not mind the order of its two operands.
    """

    def __init__(
        self,
        arena: Arena,
        phase: Phase,
        width: int,
        accumulator: Callable[[tuple[dt.DType, ...]], Accumulator],
    ) -> None:
        self.arena, self.phase, self.width = arena, phase, width
        self.at = next(
            k for k, s in enumerate(phase.body) if isinstance(s, Let) and s.term.op == "scan"
        )
        let = phase.body[self.at]
        assert isinstance(let, Let)
        self.term = let.term
        self.reducer, _ = let.term.payload
        self.nothing = arena.const(self.reducer.start(let.term.dtype)[0], let.term.dtype)
        self.held, self.sum, self.mine, self.warp, self.other, self.given = (
            accumulator((let.term.dtype,)) for _ in range(6)
        )
        self.thread, self.group = register(arena, "tid.x"), register(arena, "ntid.x")
        self.lane = self.thread % WARP  # among the threads of the group in its warp

    def row(self, written: Callable[[ir.Body], Body]) -> Body:
        """A row; `written` are statements of a loop nest for a thread.

        What is left of it after whole elements of a thread goes by single ones.
        """
        inner, width = self.phase.inner, self.width
        assert inner is not None
        extent = self.arena.extent[inner]
        whole = extent // width * width
        body: Body = [Set(self.sum, (self.nothing,))]
        body.append(self.pieces(written, self.arena.const(0), whole, width))
        if width > 1:
            body.append(self.pieces(written, whole, extent, 1))
        return body

    def pieces(
        self, written: Callable[[ir.Body], Body], begin: Term, end: Term, width: int
    ) -> Loop:
        """The elements from `begin` to before `end`, a multiple of `width`."""
        arena, inner = self.arena, self.phase.inner
        assert inner is not None
        each = self.group * width
        piece = arena.var((end - begin + each - 1) // each)
        first = begin + piece * each + self.thread * width
        before, after = self.phase.body[: self.at], self.phase.body[self.at + 1 :]
        moved = row_moves(arena, self.phase.body, inner, width)

        def elements(body: Body) -> Wide:
            return Wide(inner, first, width, moved.keys, [When(first < end, body)], moved.aligned)

        source = self.term.args[0]
        join = Join(self.reducer, self.mine, (source,))
        running = Running(self.term, self.given)
        inside: Body = [
            Set(self.mine, (self.nothing,)),
            elements([*written(before), Set(self.held, (source,)), join]),
            *self.within_warp(),
            *self.across_pieces(),
            elements([Result(source, self.held), running, *written(after)]),
        ]
        zero, one = arena.const(0), arena.const(1)
        return Loop((piece.payload,), zero, arena.extent[piece.payload], one, inside)

    def joined(self, into: Accumulator, values: Accumulator) -> Combine:
        return Combine(self.reducer, into, values)

    def within_warp(self) -> Body:
        """`given` is what the threads before this one have in the group's part of a warp.

        `warp` is what all of them have.
        """
        arena = self.arena
        body: Body = []
        for distance in map(arena.const, STEPS):
            join = When(distance <= self.lane, [self.joined(self.mine, self.other)])
            step: Body = [Shuffle(self.other, self.mine, "up", int(distance.payload)), join]
            body.append(When(distance < self.group, step))
        body.append(Shuffle(self.warp, self.mine, "idx", WARP - 1))
        first = When(self.lane.eq(arena.const(0)), [Set(self.given, (self.nothing,))])
        return [*body, Shuffle(self.given, self.mine, "up", 1), first]

    def across_pieces(self) -> Body:
        """Joins the warps and pieces before to `given`, and all of this piece to `sum`."""
        arena = self.arena
        warp, warps = self.thread // WARP, self.group // WARP
        other = arena.var(BLOCK // WARP)
        each: Body = [
            Fetch(self.other, WARPS, other),
            When(other < warp, [self.joined(self.given, self.other)]),
            self.joined(self.sum, self.other),
        ]
        zero, one = arena.const(0), arena.const(1)
        several: Body = [
            Barrier(),  # what was there before has been read
            Share(self.warp, WARPS, warp),
            Barrier(),
            Loop((other.payload,), zero, warps, one, each),
        ]
        many = arena.const(WARP) < self.group
        alone = When(~many, [self.joined(self.sum, self.warp)])
        return [self.joined(self.given, self.sum), alone, When(many, several)]
