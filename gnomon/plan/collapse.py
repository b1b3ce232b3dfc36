"""Joining neighbouring loops where memory allows it: `u` over `v` becomes `w = u*n + v`.

Allowed where every read and store sees u and v only as u*(n*f) + v*f; known from the Terms,
whatever extension they came through.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term
from gnomon.plan.lower import Nest, Root
from gnomon.plan.terms import Affine, affine, from_affine, postorder, rebuild


def collapse(nest: Nest, arena: Arena) -> Nest:
    """`nest` with its variables, and those of its folds, joined as far as they can be."""
    k = len(nest.vars) - 1
    while k > 0:
        joined = _join_outer(nest, nest.vars[k - 1], nest.vars[k], arena)
        nest = joined or nest
        k -= 1
    return _folds(nest, arena)


def _join_outer(nest: Nest, u: int, v: int, arena: Arena) -> Nest | None:
    if nest.turns and (u in nest.turns) != (v in nest.turns):
        return None
    joint = Joint(arena, u, v)
    offsets = [joint.offset(root.offset) for root in nest.roots]
    values = joint.values(nest.values)
    if values is None or None in offsets:
        return None
    roots = tuple(
        Root(root.dest, root.saver, offset, value)
        for root, offset, value in zip(nest.roots, offsets, values, strict=True)
        if offset is not None
    )
    variables = tuple(joint.w if x == u else x for x in nest.vars if x != v)
    turns = tuple(joint.w if x == u else x for x in nest.turns if x != v)
    return Nest(variables, roots, turns)


def _folds(nest: Nest, arena: Arena) -> Nest:
    """Joins the variables of each fold."""
    values = nest.values
    for _ in range(len(arena.table)):
        pair = next(filter(None, (_join_fold(t, arena) for t in postorder(values))), None)
        if pair is None:
            break
        values = rebuild(values, dict([pair]).get)
    return nest.storing(values)


def _join_fold(term: Term, arena: Arena) -> tuple[Term, Term] | None:
    """A fold with two of its variables joined, beside the old one; None where none can be."""
    if term.op != "fold":
        return None
    reducer, variables = term.payload
    for u, v in pairwise(variables):
        joint = Joint(arena, u, v)
        bodies = joint.values(term.args)
        if bodies is not None:
            rest = tuple(joint.w if x == u else x for x in variables if x != v)
            return term, arena.make("fold", tuple(bodies), term.dtype, (reducer, rest))
    return None


class Joint:
    """The variable that takes the place of `u` over `v`."""

    def __init__(self, arena: Arena, u: int, v: int) -> None:
        self.arena, self.u, self.v = arena, u, v
        self.inner = arena.extent[v]
        self.both = (1 << u) | (1 << v)
        self._w: int | None = None

    @property
    def w(self) -> int:
        if self._w is None:
            extent = self.arena.extent[self.u] * self.inner
            self._w = self.arena.var(extent).payload
        return self._w

    def offset(self, term: Term) -> Term | None:
        """`term` in the joint variable, or None."""
        if not term.free & self.both:
            return term
        form = affine(term, self.both)
        if form is None:
            return None
        zero = self.arena.const(0)
        fu, fv = form.factors.get(self.u, zero), form.factors.get(self.v, zero)
        if fu is not fv * self.inner:
            return None
        return from_affine(Affine({self.w: fv}, form.rest), self.arena)

    def values(self, terms: Sequence[Term]) -> list[Term] | None:
        """`terms` with all reads in the joint variable; None where anything else needs u or v."""
        if (self.arena.extent[self.u].free | self.inner.free) & self.both:
            return None
        blocked = False

        def change(term: Term) -> Term | None:
            nonlocal blocked
            if not term.free & self.both:
                return term
            if term.op == "var" or blocked:
                blocked = True
                return term
            if term.op in ("add", "sub") and term.dtype is dt.int64:
                return self.offset(term)
            if term.op != "read" or (len(term.args) == 2 and term.args[1].free & self.both):
                return None
            offset = self.offset(term.args[0])
            blocked = blocked or offset is None
            args = (offset or term.args[0], *term.args[1:])
            return self.arena.make("read", args, term.dtype, term.payload)

        new = rebuild(terms, change)
        return None if blocked else new
