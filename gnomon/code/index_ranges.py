"""Conditions that hold for one range of the innermost index: evaluated once a row, not a lane.

`pad`, and the columns of windows, ask of every element whether it lies inside. Along a row the
answer is yes from one place on to another, both known when the row begins. Between them nothing
need be asked; beside them it takes two comparisons of small integers, whatever the question was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term
from gnomon.plan.ir import Body, Fold, Let, Phase
from gnomon.plan.terms import affine, postorder


class IndexRange(NamedTuple):
    """`cond` holds from index `low` on to before `high`."""

    cond: Term
    low: Term
    high: Term


def ranges(phase: Phase, arena: Arena) -> list[IndexRange]:
    """The conditions of a phase's inner loop that are ranges."""
    if phase.inner is None or not phase.split or any(isinstance(s, Fold) for s in phase.body):
        return []
    asked: dict[int, Term] = {}
    for term in postorder(roots(phase.body)):
        if term.op == "select" or (term.op == "read" and len(term.args) == 2):
            cond = term.args[0 if term.op == "select" else 1]
            if cond.dtype is dt.bool_ and cond.free >> phase.inner & 1:
                asked[cond.id] = cond
    found = (_range(cond, phase.inner, arena) for cond in asked.values())
    return [span for span in found if span is not None]


def roots(body: Body) -> Iterable[Term]:
    """The Terms that the statements of a body name."""
    for stmt in body:
        if isinstance(stmt, Let):
            yield stmt.term
        elif not isinstance(stmt, Fold):
            yield from (stmt.offset, stmt.value)


def _range(cond: Term, var: int, arena: Arena) -> IndexRange | None:
    low, high = arena.const(0), arena.extent[var]
    for part in _conjunction(cond):
        if not part.free >> var & 1:  # of the row as a whole
            high = arena.op("select", part, high, arena.const(0))
            continue
        bound = _bound(part, var, arena)
        if bound is None:
            return None
        below, place = bound
        low, high = (
            (low, arena.op("min", high, place)) if below else (arena.op("max", low, place), high)
        )
    return IndexRange(cond, low, high)


def _conjunction(cond: Term) -> Iterator[Term]:
    """What must hold together for `cond` to hold."""
    stack = [cond]
    while stack:
        term = stack.pop()
        if term.op == "and":
            stack.extend(reversed(term.args))
        else:
            yield term


def _bound(cond: Term, var: int, arena: Arena) -> tuple[bool, Term] | None:
    """Whether a comparison holds below a place or from a place on, and which that is."""
    if cond.op not in ("lt", "le") or cond.args[0].dtype is not dt.int64:
        return None
    a, b = (affine(side, 1 << var) for side in cond.args)
    if a is None or b is None:
        return None
    zero = arena.const(0)
    factor = (a.factors.get(var, zero) - b.factors.get(var, zero)).constant
    if not factor:
        return None
    step = abs(int(factor))
    rest = b.rest - a.rest  # factor * var < rest, or <= rest
    if cond.op == "le":
        rest = rest + 1
    if factor > 0:
        return True, _divided(rest + (step - 1), step, arena)
    return False, _divided(arena.const(step) - rest, step, arena)


def _divided(value: Term, step: int, arena: Arena) -> Term:
    """`value` divided, rounded down; 0 where it is negative."""
    return arena.op("max", value, arena.const(0)) // step
