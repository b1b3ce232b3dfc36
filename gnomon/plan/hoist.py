"""Cost-correctness: no reduction is computed more often than its result has elements.

A fold is computed where it stands when it depends on all the outer variables. One that does not
(the mean over axis 0 in `x - mean(x, 0)`, the sum in `x / sum(x)`) would be computed anew for every
row: it becomes a phase of its own that stores into scratch memory of its own size. A fold to a
single value is cut into chunks of fixed size, so that threads can share it and its result does not
depend on how many there are.
"""

from __future__ import annotations

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr.term import Arena, Term, mask_of
from gnomon.plan.lower import Nest, Root
from gnomon.plan.operand import Operand
from gnomon.plan.terms import postorder, rebuild

TINY = 64  # a window of so few elements is cheaper computed again than stored
CHUNK = 16384  # elements that one partial result of a full reduction covers


class Scratch:
    """Scratch operands of a kernel and their sizes."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.buffers: list[tuple[Operand, Term]] = []
        self.final: set[int] = set()  # variables of folds over partial results: not to be cut again

    def take(self, variables: tuple[int, ...], dtype: DType) -> tuple[Operand, Term]:
        """An operand with an element for every value of `variables`, and the offset of theirs."""
        offset, stride = self.arena.const(0), self.arena.const(1)
        for v in reversed(variables):
            offset = offset + self.arena.make("var", (), dt.int64, v) * stride
            stride = stride * self.arena.extent[v]
        operand = Operand(("scratch", len(self.buffers)), (stride,), (1,), dtype)
        self.buffers.append((operand, stride))
        return operand, offset


def hoist(nest: Nest, arena: Arena, scratch: Scratch) -> list[Nest]:
    """The phases that compute `nest`, in order; the last one stores its roots."""
    phases: list[Nest] = []
    while True:
        fold = _misplaced(nest)
        if fold is None:
            break
        own, nest = _cut(nest, fold, arena, scratch)
        phases.extend(hoist(own, arena, scratch))
    if not nest.vars:
        partial, nest = _chunked(nest, arena, scratch)
        phases.extend(partial)
    return [*phases, nest]


def _misplaced(nest: Nest) -> Term | None:
    """The first fold that would be computed again and again."""
    order = postorder([root.value for root in nest.roots])
    rows = mask_of(nest.vars[:-1])
    around = _surroundings(order)
    for term in order:
        if term.op != "fold" or _tiny(term) or not nest.vars:
            continue
        needed = rows | around.get(term.id, 0) if term.free else mask_of(nest.vars)
        if needed & ~term.free:
            return term
    return None


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


def _cut(nest: Nest, fold: Term, arena: Arena, scratch: Scratch) -> tuple[Nest, Nest]:
    """A nest that stores the results of `fold`, and `nest` reading them."""
    ordered = [*nest.vars, *(v for v in range(len(arena.extent)) if v not in nest.vars)]
    variables = tuple(v for v in ordered if fold.free >> v & 1)
    roots, parts = [], {}
    results = [t for t in postorder([r.value for r in nest.roots]) if t.op == "part"]
    for part in [t for t in results if t.args[0] is fold]:
        operand, offset = scratch.take(variables, part.dtype)
        roots.append(Root(operand, "saveto", offset, part))
        parts[part.id] = arena.make("read", (offset,), part.dtype, operand)
    return Nest(variables, tuple(roots)), _replace(nest, parts)


def _replace(nest: Nest, parts: dict[int, Term]) -> Nest:
    values = rebuild([r.value for r in nest.roots], lambda t: parts.get(t.id))
    roots = tuple(
        Root(r.dest, r.saver, r.offset, v) for r, v in zip(nest.roots, values, strict=True)
    )
    return Nest(nest.vars, roots, nest.turns)


def _chunked(nest: Nest, arena: Arena, scratch: Scratch) -> tuple[list[Nest], Nest]:
    """Folds to a single value in two steps: partial results of chunks, and a fold over these."""
    phases: list[Nest] = []
    while True:
        order = postorder([r.value for r in nest.roots])
        fold = next((t for t in order if _whole(t) and t.payload[1][0] not in scratch.final), None)
        if fold is None:
            return phases, nest
        partial, final = _chunk(fold, arena, scratch)
        phases.extend(hoist(partial, arena, scratch))
        nest = _replace(nest, {fold.id: final})


def _whole(term: Term) -> bool:
    return term.op == "fold" and not term.free and not _tiny(term)


def _chunk(fold: Term, arena: Arena, scratch: Scratch) -> tuple[Nest, Term]:
    """The phase of partial results, and the fold over them that takes the place of `fold`."""
    reducer, variables = fold.payload
    first, inner = variables[0], arena.const(1)
    for v in variables[1:]:
        inner = inner * arena.extent[v]
    n = arena.extent[first]
    step = arena.op(
        "max", arena.const(CHUNK) // arena.op("max", inner, arena.const(1)), arena.const(1)
    )
    chunk = arena.var((n + (step - 1)) // step)
    within = arena.var(arena.op("min", step, n - chunk * step))
    position = chunk * step + within
    bodies = rebuild(
        fold.args, lambda t: position if t.op == "var" and t.payload == first else None
    )
    partial = arena.parts(reducer, (within.payload, *variables[1:]), tuple(bodies))
    roots, again = [], []
    final = arena.var(arena.extent[chunk.payload])
    scratch.final.add(final.payload)
    for part in partial:
        operand, offset = scratch.take((chunk.payload,), part.dtype)
        roots.append(Root(operand, "saveto", offset, part))
        again.append(arena.make("read", (final,), part.dtype, operand))
    whole = arena.make("fold", tuple(again), fold.dtype, (reducer, (final.payload,)))
    return Nest((chunk.payload,), tuple(roots)), whole
