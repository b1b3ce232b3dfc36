"""Terms with repeated lanes: their index is divided by a small power of two along the lanes.

Neighbouring lanes share the value of such a Term: `x[i // 2]`, or the counter of a pair of random
numbers. It is computed over the quotient, with so many times fewer lanes, and each lane repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gnomon.expr.term import Arena, Term
from gnomon.plan.ir import Body, Fold, Let, Phase
from gnomon.plan.terms import postorder, rebuild

DIVISORS = (2, 4, 8)


class Repeated(NamedTuple):
    """A Term over the quotient, and the divisor."""

    term: Term
    divisor: int


class Quotients:
    """The repeated Terms of a phase by id, and the variable that stands for the quotient."""

    def __init__(self, arena: Arena, phase: Phase) -> None:
        self.terms: dict[int, Repeated] = {}
        self.variables: dict[int, int] = {}
        if not phase.vector or phase.inner is None:
            return
        found: dict[int, list[Term]] = {}
        divisors: dict[int, int | None] = {}
        for term in postorder(_roots(phase.body)):
            divisor = divisors[term.id] = _divisor(term, phase.inner, divisors)
            if divisor:
                found.setdefault(divisor, []).append(term)
        for divisor, terms in found.items():
            self._replace(arena, divisor, terms)

    def _replace(self, arena: Arena, divisor: int, terms: list[Term]) -> None:
        quotient = arena.var(0)  # as many as there are: no loop of its own asks
        self.variables[divisor] = quotient.payload

        def change(term: Term) -> Term | None:
            return quotient if term.op == "idiv" and term in whole else None

        whole = {t for t in terms if t.op == "idiv" and t.args[0].op == "var"}
        for term, new in zip(terms, rebuild(terms, change), strict=True):
            self.terms[term.id] = Repeated(new, divisor)


def _divisor(term: Term, var: int, below: dict[int, int | None]) -> int | None:
    """By what a Term sees `var` divided: 0 not at all, None as it is or in several ways."""
    if not term.free >> var & 1:
        return 0
    if term.op == "idiv" and term.args[0].op == "var" and term.args[1].constant in DIVISORS:
        return int(term.args[1].payload)
    if term.op in ("var", "fold", "part"):
        return None
    seen = {below[a.id] for a in term.args} - {0}
    return seen.pop() if len(seen) == 1 else None


def _roots(body: Body) -> Iterable[Term]:
    for stmt in body:
        if isinstance(stmt, Let):
            yield stmt.term
        elif isinstance(stmt, Fold):
            yield from stmt.terms
        else:
            yield from (stmt.offset, stmt.value)
