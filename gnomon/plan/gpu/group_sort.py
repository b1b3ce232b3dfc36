"""Sorts of rows by groups of threads, in shared memory: Batcher's bitonic network.

All of its exchanges put the smaller of two keys first: the first step of a stage compares the keys
of one sorted run, from its end on, with those of the next one, from its begin on. What lies beyond
the end of a row would come last, so nothing is compared with it: rows have any length.

A block has as many rows at once as it has groups, or none for some of them: all of its threads
arrive at each barrier.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon import dtype as dt
from gnomon.expr.reducer import MAXIMUM, MINIMUM
from gnomon.expr.term import Arena, Term
from gnomon.plan import ir
from gnomon.plan.gpu.grid import (
    HELD,
    SHARED_SLOT,
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
    When,
    register,
)
from gnomon.plan.gpu.sorting import RUN
from gnomon.plan.ir import Let, Phase

KEYS = Area(0, SHARED_SLOT, RUN)  # of all rows that a block has
STAGES = (RUN - 1).bit_length()


class GroupSort:
    """The only sort of a phase."""

    def __init__(
        self,
        arena: Arena,
        phase: Phase,
        accumulator: Callable[[tuple[dt.DType, ...]], Accumulator],
        written: Callable[[ir.Body], Body],
    ) -> None:
        """`written` are statements of a loop nest for a thread."""
        self.arena, self.phase, self.written = arena, phase, written
        self.at = next(
            k for k, s in enumerate(phase.body) if isinstance(s, Let) and s.term.op == "sort"
        )
        let = phase.body[self.at]
        assert isinstance(let, Let) and phase.inner is not None
        self.term, self.inner = let.term, phase.inner
        self.key, self.other, self.least = (accumulator((let.term.dtype,)) for _ in range(3))
        self.zero, self.one = arena.const(0), arena.const(1)
        self.thread, self.group = register(arena, "tid.x"), register(arena, "ntid.x")
        self.extent = arena.extent[self.inner]
        self.first = register(arena, "tid.y") * self.group * HELD  # of the group's keys

    def loops(self, variables: tuple[int, ...], items: Term) -> Body:
        """All rows."""
        arena, groups = self.arena, register(self.arena, "ntid.y")
        several = arena.var(items)  # rows at once
        row = several * groups + register(arena, "tid.y")
        end = arena.op("min", row + 1, items)
        index = arena.make("var", (), dt.int64, self.inner)
        before, after = self.phase.body[: self.at], self.phase.body[self.at + 1 :]
        loaded: Body = [
            *self.written(before),
            Set(self.key, self.term.args[:1]),
            Share(self.key, KEYS, self.first + index),
        ]
        stored: Body = [
            Fetch(self.key, KEYS, self.first + index),
            Result(self.term, self.key),
            *self.written(after),
        ]
        body: Body = [  # who loads a place has read what was there before
            self.in_row(variables, row, end, loaded),
            self.network(row < items),
            Barrier(),
            self.in_row(variables, row, end, stored),
        ]
        rounds = (items + groups - 1) // groups
        blocks = register(arena, "ctaid.x"), register(arena, "nctaid.x")
        return [Loop((several.payload,), blocks[0], rounds, blocks[1], body)]

    def in_row(self, variables: tuple[int, ...], row: Term, end: Term, body: Body) -> Loop:
        """`body` for the elements of the group's row, if it has one."""
        elements = Loop((self.inner,), self.thread, self.extent, self.group, body)
        return Loop(variables, row, end, self.one, [*self.written(self.phase.row), elements])

    def network(self, inside: Term) -> Loop:
        """Every stage, whose first step mirrors; `power` goes from the stage down to 0.

        Of the pairs that exist `high` is another one each, so they are half of the keys at most;
        it grows with the pair's number, so they are the first ones.
        """
        arena = self.arena
        stage, step, pair = arena.var(STAGES), arena.var(STAGES), arena.var(RUN // 2)
        power, number = (arena.cast(t, dt.int32) for t in (stage - step, pair))
        distance = arena.op("shl", arena.const(1, dt.int32), power)
        high = number + (number & -distance) + distance  # a bit of 1 goes in
        mirrored = step.eq(0)
        low = arena.op("xor", high, arena.select(mirrored, distance + distance - 1, distance))
        exists = inside & (high < arena.cast(self.extent, dt.int32))
        low, high = (self.first + arena.cast(t, dt.int64) for t in (low, high))
        exchange: Body = [
            Fetch(self.key, KEYS, low),
            Fetch(self.other, KEYS, high),
            Set(self.least, self.key),
            Combine(MINIMUM, self.least, self.other),
            Combine(MAXIMUM, self.other, self.key),
            Share(self.least, KEYS, low),
            Share(self.other, KEYS, high),
        ]
        pairs = arena.op("lshr", self.extent, self.one)
        each = Loop((pair.payload,), self.thread, pairs, self.group, [When(exists, exchange)])
        steps = Loop((step.payload,), self.zero, stage + 1, self.one, [Barrier(), each])
        joins = When(arena.op("shl", self.one, stage) < self.extent, [steps])
        return Loop((stage.payload,), self.zero, arena.const(STAGES), self.one, [joins])
