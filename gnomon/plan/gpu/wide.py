"""Vector loads and stores: how many neighbouring elements a GPU's thread takes at once.

What is dense along the innermost variable moves up to 16 bytes by one instruction, from addresses
that are multiples of as many bytes. Whether they are is known at run time alone, from addresses and
strides; it must hold for all rows at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from gnomon import dtype as dt
from gnomon.expr.term import Arena, Term
from gnomon.plan import ir
from gnomon.plan.gpu.grid import address
from gnomon.plan.ir import Fold, Let, Put, every
from gnomon.plan.operand import Operand
from gnomon.plan.schedule import stride
from gnomon.plan.scratch import TASK
from gnomon.plan.terms import affine, postorder

BYTES = 16  # that a thread moves by one instruction
MOST = 40  # Terms beyond which several elements at once take registers from other threads


class Move(NamedTuple):
    """What is dense along a variable: an operand, the offset, and its multiples.

    `step` is -1 where it goes backwards, else 1; `start` is where it begins in the first row,
    `factors` what every row's begin is a sum of multiples of.
    """

    operand: Operand
    offset: Term
    step: int
    start: Term
    factors: tuple[Term, ...]

    @property
    def key(self) -> tuple[Hashable, int]:
        """How `grid.Wide` knows it."""
        return self.operand.slot, self.offset.id


class Moves(NamedTuple):
    """How many elements are taken at once, of which operands by one instruction, with their steps,
    and whether all of those lie at multiples."""

    width: int
    keys: Mapping[tuple[Hashable, int], int]
    aligned: Term


def moves(arena: Arena, body: ir.Body, inner: int) -> Moves | None:
    """The wide moves of the statements of an element; None where one at a time is as good."""
    order = postorder(roots(body))
    stores = stored(body, inner)
    puts = sum(isinstance(s, Put) for s in body)
    each = [t for t in order if t.free >> inner & 1]  # what is the same for all takes no more room
    if len(stores) < max(1, puts) or len(each) > MOST:
        return None
    found = [*stores, *along(order, inner)]
    operands = [*(m.operand for m in found), *(t.payload for t in each if t.op == "read")]
    width = max(2, BYTES // max(operand.dtype.size for operand in operands))
    return Moves(width, {m.key: m.step for m in found}, aligned(arena, found, width))


def along(order: Iterable[Term], variable: int) -> list[Move]:
    """What Terms read or keep that is dense along a variable."""
    reads = [(t.payload, t.args[0]) for t in order if t.op == "read" and not t.args[1:]]
    keeps = [(t.payload, t.args[1]) for t in order if t.op == "keep"]
    found = (move(operand, offset, variable) for operand, offset in (*reads, *keeps))
    return [m for m in found if m is not None]


def shared_width(loops: Iterable[tuple[int, ir.Body]]) -> int:
    """How many elements a thread takes at once in all loops of a row; 1 where that is as good.

    It is the same in all, so that a thread finds what it has kept itself.
    """
    sizes = []
    for variable, body in loops:
        order = postorder(roots(body))
        if len(order) > MOST:
            return 1
        found = [*along(order, variable), *stored(body, variable)]
        sizes += [m.operand.dtype.size for m in found]
    return max(2, BYTES // max(sizes)) if sizes else 1


def stored(body: ir.Body, variable: int) -> list[Move]:
    """What statements store that is dense along a variable."""
    found = (move(s.dest, s.offset, variable) for s in body if isinstance(s, Put))
    return [m for m in found if m is not None]


def row_moves(arena: Arena, body: ir.Body, variable: int, width: int) -> Moves:
    """The wide moves of the statements of a loop along a row."""
    found = [*along(postorder(roots(body)), variable), *stored(body, variable)]
    return Moves(width, {m.key: m.step for m in found}, aligned(arena, found, width))


def roots(body: ir.Body) -> Iterable[Term]:
    """What the statements of a body compute."""
    for stmt in every(body):
        if isinstance(stmt, Let):
            yield stmt.term
        elif isinstance(stmt, Fold):
            yield from stmt.terms
        else:
            yield from (stmt.offset, stmt.value)


def move(operand: Operand, offset: Term, inner: int) -> Move | None:
    """An operand that is dense along `inner`, where rows lie at multiples of what is known."""
    form, step = affine(offset, 1 << inner), stride(offset, inner)
    if form is None or step not in (1, -1):
        return None
    parts = multiples(form.rest)
    return None if parts is None else Move(operand, offset, step, *parts)


def multiples(rest: Term) -> tuple[Term, tuple[Term, ...]] | None:
    """An index as what does not vary, plus multiples of factors that do not; None where it is not.

    Only the factors are of interest, not what they are multiplied with.
    """
    start, factors = rest.arena.const(0), []
    stack = [(rest, 1)]
    while stack:
        term, sign = stack.pop()
        if _fixed(term):
            start = start + term if sign > 0 else start - term
        elif term.op in ("add", "sub"):
            last = -sign if term.op == "sub" else sign
            stack += [(term.args[0], sign), (term.args[1], last)]
        elif term.op == "mul" and any(map(_fixed, term.args)):
            factors.append(next(filter(_fixed, term.args)))
        else:
            return None
    return start, tuple(dict.fromkeys(factors))


def _fixed(term: Term) -> bool:
    """Whether a Term is arithmetic on sizes and strides alone, the same for all threads."""
    if term.free:
        return False
    return all(t.op not in ("read", "part") and t.payload != TASK for t in postorder([term]))


def aligned(arena: Arena, found: Iterable[Move], width: int) -> Term:
    """Whether everything lies at multiples of the bytes that an instruction moves."""
    zero, holds = arena.const(0), arena.const(True, dt.bool_)
    for operand, _, step, start, factors in found:
        size = operand.dtype.size
        end = (
            start + 1 if step < 0 else start
        )  # of what comes before, or behind if it goes backwards
        place = address(arena, operand.slot) + end * size
        holds = holds & (place % (width * size)).eq(zero)
        for factor in factors:
            holds = holds & (factor % width).eq(zero)
    return holds
