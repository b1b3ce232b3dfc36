"""Cost-correctness: no reduction is computed more often than its result has elements.

A fold is computed where it stands when it depends on all the outer variables. One that does not
(the mean over axis 0 in `x - mean(x, 0)`, the sum in `x / sum(x)`) would be computed anew for every
row: it becomes a phase of its own that stores into scratch memory of its own size. So does one that
stands in the loops of another fold (a row's maximum, in the sum over rows of a loss).

A fold to a single value, or to a single row, is cut into chunks of fixed size, so that threads can
share it, its result does not depend on how many there are, and sums lose little: partial results
of all chunks but the last are a phase of their own, which is empty where one chunk holds all.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term, mask_of
from gnomon.plan.lower import Nest, Root
from gnomon.plan.schedule import lanes_across
from gnomon.plan.scratch import Scratch
from gnomon.plan.terms import postorder, rebuild, renamed

TINY = 64  # a window of so few elements is cheaper computed again than stored
CHUNK = 16384  # elements that one partial result of a full reduction covers
ROWS = 256  # elements that one partial result of a reduction to a row covers


def hoist(nest: Nest, arena: Arena, scratch: Scratch) -> list[Nest]:
    """The phases that compute `nest`, in order; the last one stores its roots."""
    phases: list[Nest] = []
    while True:
        folds = _misplaced(nest) or _nested(nest)
        if not folds:
            break
        own, nest = _cut(nest, folds, arena, scratch)
        phases.extend(hoist(own, arena, scratch))
    while len(nest.vars) < 2 and not nest.turns:
        folds = _splittable(nest, scratch)
        if not folds:
            break
        if _awaited(nest, folds):
            own, nest = _cut(nest, folds, arena, scratch)
            phases.extend(hoist(own, arena, scratch))
            continue
        partial, nest = _chunked(nest, folds, arena, scratch)
        phases.extend(hoist(partial, arena, scratch))
    return [*phases, nest]


def _misplaced(nest: Nest) -> list[Term]:
    """The first folds that would be computed again and again: over the same ranges, at once."""
    order = postorder(nest.values)
    rows = mask_of(nest.vars[:-1])
    around = _surroundings(order)
    found: list[Term] = []
    for term in order:
        if term.op != "fold" or _tiny(term) or not nest.vars:
            continue
        needed = rows | around.get(term.id, 0) if term.free else mask_of(nest.vars)
        if needed & ~term.free:
            found.append(term)
    return _together(found, found)


def _nested(nest: Nest) -> list[Term]:
    """The long folds within the loops of another: apart they have threads and lanes of their own.

    All that depend on the same variables are stored at once; beside what they read it is little.
    """
    order = postorder(nest.values)
    inner = _surroundings(order)
    found = [t for t in order if t.id in inner and not _tiny(t) and _reads_all(t)]
    return [t for t in found if t.free == found[0].free]


def _together(folds: Sequence[Term], pending: Sequence[Term]) -> list[Term]:
    """The first of `folds`, and those over the same ranges that wait for none of `pending`."""
    if not folds:
        return []
    first = folds[0]
    waiting = {t.id for t in pending}
    same = [t for t in folds if t.payload[1] == first.payload[1] and t.free == first.free]
    return [t for t in same if not any(x.id in waiting for x in postorder(t.args))]


def _surroundings(order: list[Term]) -> dict[int, int]:
    """For folds that depend on the variables of a fold around them: what that one depends on."""
    around: dict[int, int] = {}
    for outer in order:
        if outer.op != "fold":
            continue
        own = mask_of(outer.payload[1])
        for inner in postorder(outer.args):
            if inner.op == "fold" and inner.free & own:
                around[inner.id] = around.get(inner.id, 0) | outer.free
    return around


def _tiny(fold: Term) -> bool:
    count = 1
    for v in fold.payload[1]:
        extent = fold.arena.extent[v].constant
        if extent is None:
            return False
        count *= int(extent)
    return count <= TINY


def _even(fold: Term) -> bool:
    """Whether a fold is as long in each row."""
    return not any(fold.arena.extent[v].free for v in fold.payload[1])


def _cut(nest: Nest, folds: Sequence[Term], arena: Arena, scratch: Scratch) -> tuple[Nest, Nest]:
    """A nest that stores the results of `folds`, and `nest` reading them."""
    free = folds[0].free
    ordered = [*nest.vars, *(v for v in range(len(arena.extent)) if v not in nest.vars)]
    variables = tuple(v for v in ordered if free >> v & 1)
    roots, parts = [], {}
    for part in _parts(nest, folds):
        operand, offset = scratch.take(variables, part.dtype)
        roots.append(Root(operand, "saveto", offset, part))
        parts[part.id] = arena.make("read", (offset,), part.dtype, operand)
    return Nest(variables, tuple(roots)), _replace(nest, parts)


def _parts(nest: Nest, folds: Sequence[Term]) -> list[Term]:
    """The results of `folds` that `nest` uses."""
    wanted = {t.id for t in folds}
    order = postorder(nest.values)
    return [t for t in order if t.op == "part" and t.args[0].id in wanted]


def _replace(nest: Nest, parts: dict[int, Term]) -> Nest:
    return nest.storing(rebuild(nest.values, lambda t: parts.get(t.id)))


# -- chunks ---------------------------------------------------------------------------------------


def _splittable(nest: Nest, scratch: Scratch) -> list[Term]:
    """Folds over the same ranges, to be cut into chunks at once."""
    order = postorder(nest.values)
    found = [t for t in order if t.op == "fold" and not _tiny(t) and _even(t)]
    pending = [t for t in found if t.payload[1][0] not in scratch.final]
    whole = [t for t in pending if t.free == mask_of(nest.vars)]
    if nest.vars:
        everything = [t for t in found if t.free >> nest.vars[0] & 1]
        if not lanes_across(nest.vars[0], everything, nest.roots):
            return []
        whole = [t for t in whole if _reads_all(t)]
    return _together(whole, pending)


def _awaited(nest: Nest, folds: Sequence[Term]) -> bool:
    """Whether other folds wait for one of `folds`."""
    wanted = {t.id for t in folds}
    order = postorder(nest.values)
    others = [t for t in order if t.op == "fold" and t.id not in wanted]
    return any(t.id in wanted for t in postorder(others))


def _reads_all(fold: Term) -> bool:
    """Whether something is read at every point: then partial results are few beside it."""
    own = [v for v in fold.payload[1] if fold.arena.extent[v].constant != 1]
    every = mask_of(own) | fold.free
    reads = (t for t in postorder(fold.args) if t.op == "read")
    return any(not every & ~t.args[0].free for t in reads)


def _chunked(
    nest: Nest, folds: Sequence[Term], arena: Arena, scratch: Scratch
) -> tuple[Nest, Nest]:
    """The nest of partial results, and `nest` joining these with the last chunk."""
    variables = folds[0].payload[1]
    first, inner = variables[0], arena.const(1)
    for v in variables[1:]:
        inner = inner * arena.extent[v]
    one, n = arena.const(1), arena.extent[first]
    size = arena.const(ROWS if nest.vars else CHUNK)
    step = arena.op("max", size // arena.op("max", inner, one), one)
    count = arena.op("max", n - 1, arena.const(0)) // step
    chunk, within, rest = arena.var(count), arena.var(step), arena.var(n - count * step)
    final = arena.var(count)
    scratch.final |= {within.payload, rest.payload, final.payload}
    roots: list[Root] = []
    parts: dict[int, Term] = {}
    for fold in folds:
        reducer = fold.payload[0]

        def over(var: Term, place: Term, fold: Term = fold) -> tuple[Term, ...]:
            bodies = tuple(renamed(fold.args, {first: place}))
            own = (var.payload, *variables[1:])
            return arena.parts(fold.payload[0], own, bodies)

        again = []
        for part in over(within, chunk * step + within):
            operand, offset = scratch.take((chunk.payload, *nest.vars), part.dtype)
            roots.append(Root(operand, "saveto", offset, part))
            (place,) = renamed([offset], {chunk.payload: final})
            again.append(arena.make("read", (place,), part.dtype, operand))
        wide = [_wide(t, reducer.name) for t in again]
        before = arena.parts(reducer, (final.payload,), tuple(wide))
        last = over(rest, count * step + rest)
        ends = [arena.cast(b, p.dtype) for b, p in zip(before, last, strict=True)]
        joined = reducer.combine(arena, tuple(ends), last)
        for part in _parts(nest, [fold]):
            parts[part.id] = joined[part.payload]
    return Nest((chunk.payload, *nest.vars), tuple(roots)), _replace(nest, parts)


def _wide(value: Term, reducer: str) -> Term:
    """Partial sums are added in float64: there may be very many."""
    narrow = reducer == "sum" and value.dtype is dt.float32
    return value.arena.cast(value, dt.float64) if narrow else value
