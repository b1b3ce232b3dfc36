"""Tiles: what is dense in memory along another variable than its destination goes by shared memory.

A block reads a tile of such an operand row by row as it lies, keeps it, and goes through it by
columns. Rows of the tile are one place longer than they need be: then neither rows nor columns
meet in a bank of shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term
from gnomon.ground.record import record
from gnomon.plan.gpu.grid import (
    BLOCK,
    WARP,
    Accumulator,
    Area,
    Barrier,
    Body,
    Elements,
    Fetch,
    Loop,
    Result,
    Set,
    Share,
    When,
    Wide,
    register,
)
from gnomon.plan.gpu.wide import roots
from gnomon.plan.ir import Let, Phase, Put
from gnomon.plan.schedule import stride
from gnomon.plan.terms import postorder

PITCH = WARP + 1  # places of a row of a tile
PLACES = WARP * PITCH
LINES = BLOCK // WARP  # of a tile that a block takes at once
SHARED = 20 << 10  # bytes of tiles that a block may keep: eight blocks run at once
LEAST = 16  # rows and columns from which tiles are not mostly empty


@record()
class Tiles:
    """How a phase is done by tiles of `inner` and another variable; `reads` are those across."""

    arena: Arena
    phase: Phase
    other: int
    reads: tuple[Term, ...]

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return sum(PLACES * r.payload.dtype.size for r in self.reads)

    @property
    def large(self) -> Term:
        """Whether there are rows and columns enough."""
        least = self.arena.const(LEAST)
        rows, columns = (self.arena.extent[v] for v in self.variables)
        return (least <= rows) & (least <= columns)

    @property
    def variables(self) -> tuple[int, int]:
        """Those of the rows and the columns of a tile."""
        assert self.phase.inner is not None
        return self.other, self.phase.inner

    def body(self, accumulator: Callable[[tuple[dt.DType, ...]], Accumulator]) -> Body:
        """All tiles, one for a block at a time."""
        arena, (u, v) = self.arena, self.variables
        mine = register(arena, "tid.x")
        turn = arena.var(WARP // LINES)
        lane, line = mine % WARP, mine // WARP + turn * LINES
        rows = tuple(arena.var((arena.extent[w] + WARP - 1) // WARP) for w in (u, v))
        first_u, first_v = (w * WARP for w in rows)
        kept = [accumulator((r.dtype,)) for r in self.reads]
        areas = list(self.areas())
        taken: Body = []
        found: Body = []
        for read, into, area in zip(self.reads, kept, areas, strict=True):
            taken += [Set(into, (read,)), Share(into, area, line * PITCH + lane)]
            found += [Fetch(into, area, lane * PITCH + line), Result(read, into)]
        inside: Body = [*found, *self.phase.row, Elements(self.phase.body)]
        tile: Body = [
            self.lines(turn, self.nearest(first_u + lane, first_v + line), taken),
            Barrier(),
            self.lines(turn, (first_u + line, first_v + lane), [self.where(inside)]),
            Barrier(),  # before the next tile is kept
        ]
        outer = tuple(w for w in self.phase.rows if w != u)
        numbers = (*outer, *(w.payload for w in rows))
        count = arena.const(1)
        for w in numbers:
            count = count * arena.extent[w]
        step = register(arena, "nctaid.x")
        return [Loop(numbers, register(arena, "ctaid.x"), count, step, tile)]

    def areas(self) -> Sequence[Area]:
        """Where the tiles are kept."""
        found, start = [], 0
        for read in sorted(self.reads, key=lambda r: -r.dtype.size):
            found.append((read, Area(start, read.dtype.size, PLACES)))
            start += PLACES * read.dtype.size
        places = dict(found)
        return [places[read] for read in self.reads]

    def lines(self, turn: Term, at: tuple[Term, Term], body: Body) -> Loop:
        """`body` for the lines of a tile, a warp for each; `at` is where its threads are.

        So many lines, known beforehand, that what they read is under way at once.
        """
        arena = self.arena
        for w, place in zip(self.variables, at, strict=True):
            body = [Wide(w, place, 1, {}, body)]
        count = arena.extent[turn.payload]
        return Loop((turn.payload,), arena.const(0), count, arena.const(1), body)

    def nearest(self, *at: Term) -> tuple[Term, Term]:
        """The place itself, or the last one that there is: nothing is asked before it is read."""
        arena = self.arena
        last = (arena.extent[w] - 1 for w in self.variables)
        u, v = (arena.op("min", a, b) for a, b in zip(at, last, strict=True))
        return u, v

    def where(self, body: Body) -> When:
        """`body`, for the threads inside of the matrix."""
        arena = self.arena
        index = [arena.make("var", (), dt.int64, w) for w in self.variables]
        inside = [at < arena.extent[w] for at, w in zip(index, self.variables, strict=True)]
        return When(inside[0] & inside[1], body)


def tiles(arena: Arena, phase: Phase) -> Tiles | None:
    """How a phase of maps goes by tiles; None where nothing is read across."""
    if phase.inner is None or not phase.rows or phase.turns or phase.ordered:
        return None
    if not all(isinstance(s, Let | Put) for s in (*phase.row, *phase.body)):
        return None
    stores = [s for s in phase.body if isinstance(s, Put)]
    written = {s.dest.slot for s in stores}
    if not stores or any(stride(s.offset, phase.inner) != 1 for s in stores):
        return None
    order = postorder(roots(phase.body))
    if any(t.op == "keep" for t in order):
        return None
    reads = [t for t in order if t.op == "read" and t.payload.slot not in written]
    for other in reversed(phase.rows):
        found = [t for t in reads if is_across(t, other, phase.inner)]
        made = Tiles(arena, phase, other, tuple(found))
        even = not (arena.extent[other].free | arena.extent[phase.inner].free)
        if found and even and made.shared <= SHARED:
            return made
    return None


def is_across(read: Term, other: int, inner: int) -> bool:
    """Whether what is read lies densely along `other`, and apart along `inner`."""
    offset, *mask = read.args
    if mask or stride(offset, other) != 1 or stride(offset, inner) in (0, 1, -1):
        return False
    return all(t.op not in ("read", "part") for t in postorder([offset]))
