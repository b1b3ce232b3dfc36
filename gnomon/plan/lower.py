"""Lowering: from statements over Operands to Terms that only read memory at flat offsets.

Index rules are expanded into each other until no `elem` is left; what a `guard` chooses is read
only where it is chosen. Every (Term, mask) is expanded once, and iteratively: expressions may be
10^5 nodes deep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gnomon.expr.composite import Chainer, Composite
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.index import Index
from gnomon.expr.term import Arena, Term, compute_dtype
from gnomon.ground.record import record
from gnomon.plan.operand import Abstract, Operand
from gnomon.plan.statement import SAVERS
from gnomon.plan.terms import with_args

Frame = tuple[Term, Term | None]


@record()
class Root:
    """One value to store: `dest[offset] saver value`."""

    dest: Operand
    saver: str
    offset: Term
    value: Term


@record()
class Nest:
    """Roots that are computed together, over the variables `vars`, outermost first."""

    vars: tuple[int, ...]
    roots: tuple[Root, ...]
    turns: tuple[int, ...] = ()  # of `vars`, those to be gone through in order

    @property
    def values(self) -> list[Term]:
        """What the roots store."""
        return [root.value for root in self.roots]

    def storing(self, values: Sequence[Term]) -> Nest:
        """The same with other values, one a root."""
        pairs = zip(self.roots, values, strict=True)
        roots = tuple(Root(root.dest, root.saver, root.offset, value) for root, value in pairs)
        return Nest(self.vars, roots, self.turns)


class Nested(Chainer):
    """A node of the planner's own that says what loop nest stores it in memory of its own."""

    def nest(self, dest: Operand, arena: Arena) -> Nest:
        """The nest that stores it in `dest`."""
        raise TypeError(f"{type(self).__name__} must define nest()")


def own_nest(statements: Abstract, arena: Arena) -> list[Nest]:
    """The nest of a statement that stores a `Nested`; none of any others."""
    dest, saver, value = statements.stores[0]
    if len(statements.stores) > 1 or saver != "saveto" or not isinstance(value, Nested):
        return []
    return [value.nest(dest, arena)]


def lower(statements: Abstract, arena: Arena) -> Nest:
    """The loop variables of the destinations, and what is stored at each."""
    shape = statements.stores[0][0].shape
    index = Index([arena.var(n) if n != 1 else 0 for n in shape], arena)
    expand = Expander(arena)
    roots = []
    for dest, saver, value in statements.stores:
        term = expand(arena.elem(value, index if value.shape else ()))
        term = updating(arena, saver, arena.cast(term, compute_dtype(dest.dtype)))
        roots.append(Root(dest, saver, offset_of(arena, dest, index), term))
    variables = tuple(i.payload for i in index if i.op == "var")
    return Nest(variables, tuple(roots))


def updating(arena: Arena, saver: str, value: Term) -> Term:
    """`value` in the dtype in which it is combined with what is stored: int32 for truth values."""
    update = SAVERS[saver]
    return value if update is None else arena.cast(value, SCALAR[update].working(value.dtype))


def offset_of(arena: Arena, operand: Operand, index: Sequence[Term]) -> Term:
    """Elements from the first of `operand` to the one at `index`."""
    offset = arena.const(0)
    for i, stride in zip(index, operand.strides, strict=True):
        offset = offset + i * stride
    return offset


class Expander:
    """Expands Terms under masks; remembers all it saw."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.memo: dict[tuple[int, int], Term] = {}
        self.bodies: dict[int, Term] = {}

    def __call__(self, root: Term, mask: Term | None = None) -> Term:
        memo = self.memo
        stack: list[tuple[Frame, list[Frame] | None]] = [((root, mask), None)]
        while stack:
            frame, needs = stack.pop()
            if key_of(frame) in memo:
                continue
            if needs is None or frame[0].op == "guard":  # which asks in two steps
                needs = self.needs(*frame)
            waiting = [f for f in needs if key_of(f) not in memo]
            if waiting:
                stack.append((frame, needs))
                stack += [(f, None) for f in waiting]
                continue
            memo[key_of(frame)] = self.build(*frame, [memo[key_of(f)] for f in needs])
        return memo[key_of((root, mask))]

    def needs(self, term: Term, mask: Term | None) -> list[Frame]:
        """What must be expanded before `term` can be."""
        if term.op == "elem":
            return [(self.body(term), mask)]
        if term.op == "fold":
            extents = [self.arena.extent[v] for v in term.payload[1]]
            return [(a, mask) for a in (*extents, *term.args)]
        if term.op != "guard":
            return [(a, mask) for a in term.args]
        cond, value, other = term.args
        first = (cond, mask)
        inside = self.memo.get(key_of(first))
        if inside is None:
            return [first]
        outside = self.arena.op("not", inside)
        return [first, (value, both(mask, inside)), (other, both(mask, outside))]

    def body(self, term: Term) -> Term:
        body = self.bodies.get(term.id)
        if body is None:
            node, index = term.payload, Index(term.args, self.arena)
            body = node.element(index) if isinstance(node, Composite) else node.at(index)
            self.bodies[term.id] = body
        return body

    def build(self, term: Term, mask: Term | None, parts: list[Term]) -> Term:
        if term.op == "elem":
            return parts[0]
        if term.op == "guard":
            cond, value, other = parts
            inside = both(mask, cond)
            return value if zero(other) and masked(value, inside) else self.arena.select(*parts)
        if term.op == "fold":
            found = iter(parts)
            for v in term.payload[1]:
                self.arena.extent[v] = next(found)
            return with_args(term, tuple(found))
        if term.op != "load":
            return with_args(term, tuple(parts))
        operand = term.payload
        offset = offset_of(self.arena, operand, parts[: operand.ndim])
        masks = [*parts[operand.ndim :], *([] if mask is None or mask.constant else [mask])]
        where = self.arena.op("and", *masks) if len(masks) == 2 else masks[0] if masks else None
        args = (offset,) if where is None else (offset, where)
        return self.arena.make("read", args, term.dtype, operand)


def both(mask: Term | None, cond: Term) -> Term:
    """`cond`, where `mask` holds as well."""
    return cond if mask is None else mask & cond


def zero(term: Term) -> bool:
    """Whether a Term is the number whose bits are all 0."""
    value = term.constant
    return value is not None and not value and math.copysign(1, value) > 0


def masked(value: Term, mask: Term) -> bool:
    """Whether a Term is what is read where `mask` holds: elsewhere that gives 0."""
    while value.op == "cast":
        (value,) = value.args
    return value.op == "read" and len(value.args) == 2 and value.args[1] is mask


def key_of(frame: Frame) -> tuple[int, int]:
    """A frame as a key."""
    term, mask = frame
    return (term.id, -1 if mask is None else mask.id)
