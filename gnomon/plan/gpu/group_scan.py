"""Scans of rows by groups of threads: piece by piece, each thread an element.

First each thread joins its element with those of the threads 1, 2, 4 ... before it in its warp.
Then it joins the warps before its own, by shared memory, and last all pieces before this one.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon import dtype as dt
from gnomon.expr.term import Arena
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
    Loop,
    Result,
    Set,
    Share,
    Shuffle,
    When,
    Wide,
    register,
)
from gnomon.plan.ir import Let, Phase

WARPS = Area(0, SHARED_SLOT, BLOCK // WARP)  # what the elements of each warp come to
STEPS = (1, 2, 4, 8, 16)


class GroupScan:
    """The only scan of a phase. Its reducer must not mind the order of its two operands."""

    def __init__(
        self,
        arena: Arena,
        phase: Phase,
        accumulator: Callable[[tuple[dt.DType, ...]], Accumulator],
    ) -> None:
        self.arena, self.phase = arena, phase
        self.at = next(
            k for k, s in enumerate(phase.body) if isinstance(s, Let) and s.term.op == "scan"
        )
        let = phase.body[self.at]
        assert isinstance(let, Let)
        self.term = let.term
        self.reducer, self.exclusive = let.term.payload
        self.nothing = arena.const(self.reducer.start(let.term.dtype)[0], let.term.dtype)
        self.sum, self.mine, self.warp, self.other, self.given = (
            accumulator((let.term.dtype,)) for _ in range(5)
        )
        self.thread, self.group = register(arena, "tid.x"), register(arena, "ntid.x")
        self.lane = self.thread % WARP  # among the threads of the group in its warp

    def row(self, written: Callable[[ir.Body], Body]) -> Body:
        """A row; `written` are statements of a loop nest for a thread."""
        arena, inner = self.arena, self.phase.inner
        assert inner is not None
        extent, zero, one = arena.extent[inner], arena.const(0), arena.const(1)
        piece = arena.var((extent + self.group - 1) // self.group)
        index = arena.make("var", (), dt.int64, inner)
        before, after = self.phase.body[: self.at], self.phase.body[self.at + 1 :]
        element: Body = [
            Set(self.mine, (self.nothing,)),
            When(index < extent, [*written(before), Set(self.mine, self.term.args[:1])]),
            *self.within_warp(),
            *self.across_pieces(),
            When(index < extent, [Result(self.term, self.given), *written(after)]),
        ]
        at = piece * self.group + self.thread
        inside: Body = [Wide(inner, at, 1, frozenset(), element)]
        pieces = Loop((piece.payload,), zero, arena.extent[piece.payload], one, inside)
        return [Set(self.sum, (self.nothing,)), pieces]

    def joined(self, into: Accumulator, values: Accumulator) -> Combine:
        return Combine(self.reducer, into, values)

    def within_warp(self) -> Body:
        """`mine` is what the threads of the group's part of a warp have up to this one.

        `given` is that, or what those before it have; `warp` what all of them have.
        """
        arena = self.arena
        body: Body = []
        for distance in map(arena.const, STEPS):
            join = When(distance <= self.lane, [self.joined(self.mine, self.other)])
            step: Body = [Shuffle(self.other, self.mine, "up", int(distance.payload)), join]
            body.append(When(distance < self.group, step))
        body.append(Shuffle(self.warp, self.mine, "idx", WARP - 1))
        if not self.exclusive:
            return [*body, Set(self.given, self.mine)]
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
