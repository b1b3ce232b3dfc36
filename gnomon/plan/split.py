"""Splitting: a nest whose value depends on where an index stands becomes one nest for each side.

`concat` and `pad` choose by comparing an index with a size. A loop that asks at every element can
neither copy rows nor join its axes; two loops, over the indices below the size and over the others,
ask nothing. Both sides of every comparison of a single loop variable with a number are split,
as long as that makes few nests. What reads on one side only of a border of the innermost variable
is left to the inner loop, which knows where to ask (see `code/index_ranges.py`). Joins of more
parts become a statement for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gnomon import dtype as dt
from gnomon.expr import walk
from gnomon.expr.ext.concat import Concat
from gnomon.expr.node import Buffer
from gnomon.expr.term import Arena, Term, mask_of
from gnomon.plan.cut import overlap
from gnomon.plan.lower import Nest, Root
from gnomon.plan.schedule import stride
from gnomon.plan.statement import Store
from gnomon.plan.terms import affine, postorder, rebuild

MOST = 12  # nests: each is code of its own
LONGEST = 200  # Terms of a nest that is worth repeating


def by_parts(stores: Sequence[Store]) -> list[Store]:
    """Statements that store each part of a join where it belongs, where a loop has too many.

    One loop would compare every index with all borders. Nothing where parts are few, or read what
    is stored into.
    """
    (value, dest), alone = (stores[0].value, stores[0].dest), len(stores) == 1
    if not alone or not isinstance(value, Concat) or len(value.parts) <= MOST:
        return []
    if any(isinstance(n, Buffer) and overlap(n, dest) for n in walk.postorder([value])):
        return []
    found, address, axis = list[Store](), dest.address, value.axis
    for part in value.parts:
        place = Buffer(part.shape, dest.dtype, dest.strides, address, dest, dest.device)
        found.append(Store(place, stores[0].saver, part))
        address += part.shape[axis] * dest.strides[axis] * dest.dtype.size
    return [s for s in found if 0 not in s.dest.shape]


class Border(NamedTuple):
    """A comparison: it holds where `var` is below `at`, or, where not `below`, beyond."""

    cond: Term
    var: int
    at: Term
    below: bool


def split(nest: Nest, arena: Arena) -> list[Nest]:
    """Nests that together do what `nest` does, without comparisons of an index with a size."""
    done: list[Nest] = []
    waiting = [nest]
    while waiting:
        whole = waiting.pop()
        border = _border(whole, arena)
        if border is None:
            done.append(whole)
            continue
        waiting.extend(reversed(_sides(whole, border, arena)))
        if len(waiting) + len(done) > MOST:
            return [nest]
    return done


def _border(nest: Nest, arena: Arena) -> Border | None:
    """The first comparison to split at; None where there is none, or it is not worth it."""
    order = postorder(_terms(nest))
    if not nest.vars or nest.turns or len(order) > LONGEST or any(t.op == "fold" for t in order):
        return None
    chosen = {c.id for t in order for c in _conditions(t)}
    inner = nest.vars[-1] if all(stride(r.offset, nest.vars[-1]) == 1 for r in nest.roots) else None
    two = {c.id for t in order if _two_sided(t) for c in _conditions(t)}
    variables = mask_of(nest.vars)
    for term in order:
        if term.op in ("lt", "le") and term.args[0].dtype is dt.int64 and term.id in chosen:
            found = _compared(term, variables, arena)
            if found is not None and (found.var != inner or term.id in two):
                return found
    return None


def _conditions(term: Term) -> list[Term]:
    """The comparisons that a selection or a masked read depends on."""
    if term.op == "select":
        roots = [term.args[0]]
    elif term.op == "read" and len(term.args) == 2:
        roots = [term.args[1]]
    else:
        return []
    return [t for t in postorder(roots) if t.dtype is dt.bool_]


def _two_sided(term: Term) -> bool:
    """Whether a Term reads, or computes, on both sides of its condition."""
    return term.op == "select" and all(t.args for t in term.args[1:])


def _compared(cond: Term, variables: int, arena: Arena) -> Border | None:
    """`a < b` or `a <= b` as a border of one variable that steps by one."""
    left, right = cond.args
    if cond.op == "lt" and left.op == "idiv" and left.args[1].constant:  # x / c < b: x < b * c
        left, right = left.args[0], right * left.args[1]
    a, b = affine(left, variables), affine(right, variables)
    if a is None or b is None or (a.rest.free | b.rest.free):
        return None
    if any(t.op == "read" for t in postorder([a.rest, b.rest])):
        return None
    factors = {v: f.constant for v, f in a.factors.items()}
    for v, f in b.factors.items():
        factors[v] = None if f.constant is None else (factors.get(v) or 0) - f.constant
    if len(factors) != 1:
        return None
    ((var, factor),) = factors.items()
    rest = b.rest - a.rest  # factor * var < rest, or <= rest
    strict = cond.op == "lt"
    if factor == 1:
        return Border(cond, var, rest if strict else rest + 1, True)
    if factor == -1:
        return Border(cond, var, arena.const(1) - rest if strict else -rest, False)
    return None


def _sides(nest: Nest, border: Border, arena: Arena) -> list[Nest]:
    """The nest below the border and the nest beyond it."""
    n = arena.extent[border.var]
    at = arena.op("max", arena.op("min", border.at, n), arena.const(0))
    low, high = arena.var(at), arena.var(n - at)
    yes, no = arena.const(border.below, dt.bool_), arena.const(not border.below, dt.bool_)
    return [
        _moved(nest, border, low.payload, low, yes),
        _moved(nest, border, high.payload, at + high, no),
    ]


def _moved(nest: Nest, border: Border, var: int, place: Term, holds: Term) -> Nest:
    """`nest` over another variable, `place` standing for the old one, with the border decided."""

    def change(term: Term) -> Term | None:
        if term is border.cond:
            return holds
        return place if term.op == "var" and term.payload == border.var else None

    new = iter(rebuild(_terms(nest), change))
    roots = tuple(Root(r.dest, r.saver, next(new), next(new)) for r in nest.roots)
    return Nest(tuple(var if v == border.var else v for v in nest.vars), roots)


def _terms(nest: Nest) -> Iterable[Term]:
    return [t for r in nest.roots for t in (r.offset, r.value)]
