"""Sharing: what several loops over one range compute is computed once.

Folds over ranges of one size take the same variables, and, where they can, those of the nest around
them: then equal parts of their bodies are one Term, and folds that do not wait for each other run
in one loop. What is dear in a fold and is needed again after it, such as the exponentials of a
softmax, is stored where its row goes to, and read from there: a `keep` Term.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term, mask_of
from gnomon.plan.lower import Nest
from gnomon.plan.operand import Operand
from gnomon.plan.scratch import Scratch
from gnomon.plan.terms import postorder, rebuild, renamed, with_args

# what one instruction does, or two: cheaper computed again than stored and read
CHEAP = frozenset(
    "const arg var read part fold keep cast bitcast add sub mul neg abs min max fma lt le eq ne and"
    " or xor not shl lshr shr select floor ceil trunc rint copysign idiv imod guard".split()
)


def share(nest: Nest, arena: Arena, scratch: Scratch) -> Nest:
    """`nest` with the variables of its folds aligned, and dear Terms kept."""
    if nest.turns:
        return nest
    nest = aligned(nest, arena)
    done: set[tuple[int, int]] = set()  # a fold and a Term in it, tried
    while True:
        found = next((pair for pair in _dear(nest) if (pair[0].id, pair[1].id) not in done), None)
        if found is None:
            return nest
        done.add((found[0].id, found[1].id))
        nest = _kept(nest, *found, arena, scratch) or nest


# -- variables ------------------------------------------------------------------------------------


def aligned(nest: Nest, arena: Arena) -> Nest:
    """`nest` with the same variables for folds over ranges of the same sizes."""
    order = postorder(nest.values)
    if not any(t.op == "fold" for t in order):
        return nest
    known: dict[Hashable, list[tuple[int, ...]]] = {}
    for v in reversed(nest.vars):
        known.setdefault((arena.extent[v].id,), []).append((v,))
    new: dict[int, Term] = {}
    for term in order:
        same = with_args(term, tuple([new[a.id] for a in term.args]))
        new[term.id] = _aligned(same, arena, known) if same.op == "fold" else same
    return nest.storing([new[value.id] for value in nest.values])


def _aligned(fold: Term, arena: Arena, known: dict[Hashable, list[tuple[int, ...]]]) -> Term:
    reducer, own = fold.payload
    extents = [arena.extent[v] for v in own]
    if any(n.free for n in extents):
        return fold
    inner = [t for t in postorder(fold.args) if t.op == "fold" and t.free & mask_of(own)]
    choices = known.setdefault(tuple([n.id for n in extents]), [])
    for other in choices:
        mask = mask_of(other)
        if other == own:
            return fold
        if fold.free & mask or any(mask_of(t.payload[1]) & mask for t in inner):
            continue
        places = {v: arena.make("var", (), dt.int64, w) for v, w in zip(own, other, strict=True)}
        args = tuple(renamed(fold.args, places))
        return arena.make("fold", args, fold.dtype, (reducer, other))
    choices.append(own)
    return fold


# -- what is kept ---------------------------------------------------------------------------------


def _dear(nest: Nest) -> Iterator[tuple[Term, Term]]:
    """Folds, and Terms in them that are worth keeping for what comes after the fold."""
    values = nest.values
    after = {t.id for t in _around(values)}
    everything = mask_of(nest.vars)
    for fold in postorder(values):
        if fold.op != "fold" or mask_of(fold.payload[1]) | fold.free != everything:
            continue
        inside = list(_around(fold.args))
        if any(t.op == "keep" for t in inside):
            continue
        for term in inside:  # the outermost first
            if term.id in after and _is_dear(term, fold, everything):
                yield fold, term


def _is_dear(term: Term, fold: Term, everything: int) -> bool:
    if term.free != everything or term.dtype.kind != "f":
        return False
    own = mask_of(fold.payload[1])
    return any(t.op not in CHEAP and t.free & own for t in _around([term]))


def _around(roots: list[Term] | tuple[Term, ...]) -> Iterator[Term]:
    """The Terms below `roots` that are not inside of a fold, each before its arguments."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term.id not in seen:
            seen.add(term.id)
            yield term
            if term.op != "fold":
                stack.extend(reversed(term.args))


def _kept(nest: Nest, fold: Term, term: Term, arena: Arena, scratch: Scratch) -> Nest | None:
    """`nest` with `term` stored where `fold` computes it, and read wherever it comes later."""
    later = _later(nest, fold)
    for root in nest.roots:
        place = root.dest, root.offset
        fits = root.saver == "saveto" and root.dest.dtype is term.dtype
        fits = fits and root.offset.free == term.free
        if fits and _undisturbed(nest, fold, term, place, later):
            return _exchanged(nest, fold, term, place, later)
    inner = nest.vars[-1]
    if len(nest.vars) < 2 or fold.payload[1] != (inner,):
        return None
    return _exchanged(nest, fold, term, scratch.row(inner, term.dtype), set())


def _exchanged(
    nest: Nest, fold: Term, term: Term, place: tuple[Operand, Term], later: set[int]
) -> Nest:
    """`nest` with `fold` storing `term`, and the roots and the folds `later` reading it."""
    operand, offset = place
    arena = term.arena
    keep = arena.make("keep", (term, offset), term.dtype, operand)
    again = arena.make("read", (offset,), term.dtype, operand)
    args = rebuild(fold.args, lambda t: keep if t is term else t if t.op == "fold" else None)
    storing = arena.make("fold", tuple(args), fold.dtype, fold.payload)

    def waiting(t: Term) -> Term | None:
        if t is fold:
            return storing
        if t is term:
            return again
        return t if t.op == "fold" and t.id not in later else None

    def others(t: Term) -> Term | None:
        return storing if t is fold else None

    return nest.storing(rebuild(rebuild(nest.values, waiting), others))


def _later(nest: Nest, fold: Term) -> set[int]:
    """The Terms that wait for `fold`."""
    found = {fold.id}
    for term in postorder(nest.values):
        if any(a.id in found for a in term.args):
            found.add(term.id)
    return found


def _undisturbed(
    nest: Nest, fold: Term, term: Term, place: tuple[Operand, Term], later: set[int]
) -> bool:
    """Whether what `place` held before is not needed, once `fold` has begun to store there."""
    operand, offset = place
    seen = {t.id for t in postorder(fold.args) if t.op == "fold"}  # these are done by then
    stack = nest.values
    while stack:
        t = stack.pop()
        if t.id in seen:
            continue
        seen.add(t.id)
        if t is term:
            own = [r for r in _around([term]) if _reads(r, operand)]
            if any(r.args[0] is not offset for r in own):
                return False
        elif _reads(t, operand):
            return False
        elif t.op == "fold" and t.id not in later:
            if any(_reads(r, operand) for r in postorder([t])):
                return False
        else:
            stack.extend(t.args)
    return all(r.offset is offset for r in nest.roots if r.dest.slot == operand.slot)


def _reads(term: Term, operand: Operand) -> bool:
    return term.op in ("read", "keep") and term.payload.slot == operand.slot
