"""Rows held in registers: what several loops along a row need is read and computed once.

Each thread of a group has a few pieces of the row for itself, the same in all loops. What a loop
computes of them and a later one needs stays in accumulators; nothing is kept in memory between.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term
from gnomon.plan import ir
from gnomon.plan.gpu.grid import HELD, Accumulator, Body, Result, Set, When, Wide, register
from gnomon.plan.gpu.wide import Moves, row_moves
from gnomon.plan.ir import Fold, Let, Phase, Put
from gnomon.plan.scratch import TASK
from gnomon.plan.terms import index_terms, postorder, rebuild, renamed


class Held:
    """A row whose loops all go along `variable`.

    `folds` are the operands of the Folds' Terms in order, `puts` the stores of the last loop.
    """

    def __init__(self, arena: Arena, variable: int, folds: list[list[Term]], puts: ir.Body) -> None:
        self.arena, self.variable, self.folds, self.puts = arena, variable, folds, puts
        loops = [*folds, _stored(puts)]
        self.first: dict[Term, int] = {}  # the loop that computes a Term first
        self.taken = [self._taken(k, roots) for k, roots in enumerate(loops)]
        crossing = dict.fromkeys(t for found in self.taken for t in found)
        self.kept = [[t for t in crossing if self.first[t] == k] for k in range(len(loops))]

    def _taken(self, number: int, roots: Sequence[Term]) -> list[Term]:
        """What loop `number` takes from those before it."""
        index = index_terms(postorder(roots))
        found: list[Term] = []
        seen: set[Term] = set()
        stack = list(roots)
        while stack:
            term = stack.pop()
            if term in seen or term.id in index or not term.free >> self.variable & 1:
                continue
            seen.add(term)
            if self.first.setdefault(term, number) < number:
                found.append(term)
            else:
                stack.extend(term.args)
        return found

    def moves(self, width: int) -> Moves:
        """The wide moves of all loops."""
        lets = [Let(t) for roots in self.folds for t in roots]
        return row_moves(self.arena, [*lets, *self.puts], self.variable, width)


class Pieces:
    """What each thread has of a held row."""

    def __init__(
        self,
        row: Held,
        width: int,
        accumulator: Callable[[tuple[dt.DType, ...]], Accumulator],
    ) -> None:
        self.row, self.width, self.moves = row, width, row.moves(width)
        self.count = max(1, HELD // width)
        self.places = {
            t: [accumulator((t.dtype,)) for _ in range(self.count)]
            for kept in row.kept
            for t in kept
        }

    @property
    def fit(self) -> Term:
        """Whether a group has registers enough for a row."""
        arena = self.row.arena
        most = register(arena, "ntid.x") * (self.count * self.width)
        return arena.extent[self.row.variable] <= most

    def loop(self, number: int, step: Body) -> Body:
        """Loop `number`: `step` for each piece that a thread has."""
        row, width = self.row, self.width
        thread, group = (register(row.arena, name) for name in ("tid.x", "ntid.x"))
        end = row.arena.extent[row.variable] // width * width
        loops: Body = []
        for k in range(self.count):
            first = (thread + group * k) * width
            inside: Body = [
                *(Result(t, self.places[t][k]) for t in row.taken[number]),
                *step,
                *(Set(self.places[t][k], (t,)) for t in row.kept[number]),
            ]
            body: Body = [When(first < end, inside)]
            loops.append(
                Wide(row.variable, first, width, self.moves.keys, body, self.moves.aligned)
            )
        return loops


def held(arena: Arena, phase: Phase) -> Held | None:
    """The row of a phase, held; None where its loops differ, or share nothing."""
    inner, folds = phase.inner, [s for s in phase.row if isinstance(s, Fold)]
    if inner is None or phase.turns or any(isinstance(s, Fold) for s in phase.body):
        return None
    extent = arena.extent[inner]
    if extent.free or not all(_is_along(f, extent) for f in folds):
        return None
    index = arena.var(extent)
    loops = [
        renamed([*(a for t in f.terms for a in t.args), *_lets(f)], {f.vars[0]: index})
        for f in folds
    ]
    puts: ir.Body = [s for s in phase.body if isinstance(s, Put)]
    loops.append(renamed(_stored(puts), {inner: index}))
    bare = _without_keeps(loops)
    if bare is None:
        return None
    *first, last = bare
    operands = [roots[: len(roots) - len(_lets(f))] for roots, f in zip(first, folds, strict=True)]
    pairs = zip(puts, last[::2], last[1::2], strict=True)
    made: ir.Body = [
        Put(p.dest, p.saver, offset, value) for p, offset, value in pairs if isinstance(p, Put)
    ]
    row = Held(arena, index.payload, operands, made)
    return row if any(row.taken) else None


def _is_along(fold: Fold, extent: Term) -> bool:
    """Whether a fold goes along rows of this length, and through nothing inside of it."""
    plain = len(fold.vars) == 1 and not any(isinstance(s, Fold) for s in fold.bodies[0])
    return plain and extent.arena.extent[fold.vars[0]] is extent


def _lets(fold: Fold) -> list[Term]:
    return [s.term for s in fold.bodies[0] if isinstance(s, Let)]


def _stored(puts: ir.Body) -> list[Term]:
    """The offsets and values of stores."""
    return [t for p in puts if isinstance(p, Put) for t in (p.offset, p.value)]


def _without_keeps(loops: Sequence[Sequence[Term]]) -> list[list[Term]] | None:
    """Loops whose Terms take what was kept in memory as it is; None where others may need it."""
    order = _inside([t for roots in loops for t in roots])
    kept = [t for t in order if t.op == "keep"]
    keeps: dict[Hashable, Term] = {(t.payload.slot, t.args[1].id): t.args[0] for t in kept}
    slots = {t.payload.slot for t in kept}
    if not all(_is_own(t.args[1], loops[-1][::2]) for t in kept):
        return None
    if any(t.op == "read" and t.payload.slot in slots and _key(t) not in keeps for t in order):
        return None
    if any(t.op == "read" and _key(t) in keeps for t in _inside(list(keeps.values()))):
        return None

    def change(term: Term) -> Term | None:
        if term.op == "part":
            return term
        if term.op == "keep":
            return rebuild([term.args[0]], change)[0]
        if term.op == "read" and _key(term) in keeps:
            return rebuild([keeps[_key(term)]], change)[0]
        return None

    return [rebuild(roots, change) for roots in loops]


def _inside(roots: Sequence[Term]) -> list[Term]:
    """The Terms below `roots` that are not inside of folds that are known already."""
    found: dict[Term, None] = {}
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term not in found:
            found[term] = None
            stack.extend(() if term.op == "part" else term.args)
    return list(found)


def _is_own(offset: Term, stored: Sequence[Term]) -> bool:
    """Whether the row alone needs what is kept there: memory of a task, or what is stored anew."""
    return offset in stored or any(t.payload == TASK for t in postorder([offset]))


def _key(read: Term) -> Hashable:
    return read.payload.slot, read.args[0].id
