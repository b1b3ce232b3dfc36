"""What a target machine has, as a record; the planner and the printers ask it."""

from __future__ import annotations

from dataclasses import dataclass

from gnomon.expr.term import Term
from gnomon.plan.ir import Body, Fold, Let, Phase
from gnomon.plan.terms import postorder


@dataclass(frozen=True)
class Target:
    """A machine: `vector_bytes` of its widest registers; `name` for the cache."""

    name: str
    vector_bytes: int
    segment: int = 1000  # statements that one function may have: compilers are not linear

    def lanes(self, phase: Phase) -> int:
        """How many elements of the widest dtype of a phase a register holds."""
        return max(self.vector_bytes // max(_sizes(phase), default=4), 2)

    def unroll(self, phase: Phase) -> int:
        """Registers that a value takes: several where little is to be done, for more in flight."""
        work = len(_terms(phase.body)) + len(_terms(phase.row))
        return 4 if work <= 12 else 2 if work <= 40 else 1


def _terms(body: Body) -> list[int]:
    found = []
    for stmt in body:
        if isinstance(stmt, Let):
            weight = 20 if stmt.term.op in ("exp", "log", "tanh") else 1
            found.extend([stmt.term.id] * weight)
        elif isinstance(stmt, Fold):
            for inner in stmt.bodies:
                found.extend(_terms(inner))
    return found


def _sizes(phase: Phase) -> list[int]:
    sizes = []
    for body in (phase.entry, phase.row, phase.body):
        for term in postorder(_roots(body)):
            if term.op not in ("var", "arg", "const") and term.dtype.kind != "b":
                data = term.op == "read" or not _index(term.dtype.name)
                sizes.extend([term.dtype.size] if data else [])
    return sizes


def _index(name: str) -> bool:
    return name == "int64"


def _roots(body: Body) -> list[Term]:
    roots = []
    for stmt in body:
        if isinstance(stmt, Let | Fold):
            roots.append(stmt.term)
        else:
            roots.append(stmt.value)
    return roots
