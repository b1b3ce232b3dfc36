"""Scans in turns: each element of the result is made of the one before, which has just been stored.

As an index rule a scan folds, for every element, all that come before it. Carried, it is one loop
along its axis whose turns read what the turn before stored; other axes are rows and lanes as ever.
Along an axis that is dense in memory the turns are lanes: a `scan` Term joins what is in a register
step by step, and takes up what the register before it came to. That is for reducers that are known
to be associative; one of your own gets its operands one by one, and so do those that are in order.
A statement whose value is a scan, to be stored in memory of its own, is such a loop. Anywhere else,
and in half floats, a scan is stored in scratch memory first.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.expr.ext.scan import Scan
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, cast
from gnomon.expr.reducer import PROD, SCANNED
from gnomon.expr.rewrite import substitute
from gnomon.expr.term import Arena, Term, compute_dtype
from gnomon.expr.walk import postorder
from gnomon.plan.cut import Temporary, overlap
from gnomon.plan.lower import Expander, Nest, Root, offset_of
from gnomon.plan.operand import Abstract, Operand
from gnomon.plan.statement import Store
from gnomon.plan.terms import postorder as terms_of


class Carried(Operand):
    """The destination of a scan, as the turn before left it."""

    __slots__ = ()


def carry(statements: Abstract, arena: Arena) -> list[Nest]:
    """The nest that goes along the axis of a scan; none where the statements are anything else."""
    dest, saver, value = statements.stores[0]
    if len(statements.stores) > 1 or saver != "saveto" or not isinstance(value, Scan):
        return []
    sizes = enumerate(value.shape)
    index = Index([arena.var(n) if n != 1 or a == value.axis else 0 for a, n in sizes], arena)
    turn, one = index[value.axis], arena.const(1)
    last = arena.const(0) + value.shape[value.axis] - 1
    new = Expander(arena)

    def place(at: Term) -> Index:
        return index.put(value.axis, last - at if value.reverse else at)

    variables = tuple(i.payload for i in index if i.op == "var")
    if one * dest.strides[value.axis] is one and is_associative(value):
        args = new(arena.elem(value.src, place(turn))), turn
        joined = arena.make("scan", args, args[0].dtype, (value.reducer, value.exclusive))
        root = Root(dest, saver, offset_of(arena, dest, place(turn)), joined)
        return [Nest(variables, (root,), (turn.payload,))]
    before = arena.op("max", turn - one, arena.const(0))
    stored = left_by(dest, place(before), arena)
    begins = turn < one
    seen = place(before if value.exclusive else turn)
    src = new(arena.elem(value.src, seen))
    (joined,) = value.reducer.combine(arena, (stored,), (src,))
    first = arena.const(value.neutral, stored.dtype) if value.exclusive else src
    root = Root(
        dest, saver, offset_of(arena, dest, place(turn)), arena.select(begins, first, joined)
    )
    return [Nest(variables, (root,), (turn.payload,))]


def left_by(dest: Operand, at: Index, arena: Arena) -> Term:
    """What the turn before stored into a destination."""
    held = Carried(dest.slot, dest.shape, dest.strides, dest.dtype)
    return arena.make("read", (offset_of(arena, dest, at),), dest.dtype, held)


def is_associative(scan: Scan) -> bool:
    """Whether a scan gives the same in whatever groups its elements are joined.

    Products of floats do not: those of a part may overflow, and 0 times infinity is no number.
    """
    known = SCANNED.get(scan.reducer.name) is scan.reducer
    return known and not (scan.reducer is PROD and scan.dtype.kind == "f")


def carries(nest: Nest) -> bool:
    """Whether the turns of `nest` read what those before have stored."""
    return bool(nest.turns) and any(is_carried(t) for t in terms_of(nest.values))


def is_carried(term: Term) -> bool:
    """Whether a Term reads what the turn before stored."""
    return term.op == "read" and isinstance(term.payload, Carried)


def alone(stores: Sequence[Store], temporary: Temporary) -> list[list[Store]]:
    """`stores` as groups in order, where every scan is one that `carry` takes."""
    groups: list[list[Store]] = []
    stores = list(stores)
    while True:
        order = postorder([s.value for s in stores])
        scan = next((n for n in order if isinstance(n, Scan) and not _direct(n, stores)), None)
        if scan is None:
            return [*groups, stores]
        wide = scan
        if compute_dtype(scan.dtype) is not scan.dtype:
            source = cast(scan.src, dt.float32)
            wide = Scan(source, scan.reducer, scan.axis, scan.exclusive, scan.reverse)
        memory = temporary(wide)
        groups.append([Store(memory, "saveto", wide)])
        values = substitute([s.value for s in stores], {scan: cast(memory, scan.dtype)})
        stores = [Store(s.dest, s.saver, v) for s, v in zip(stores, values, strict=True)]


def _direct(scan: Scan, stores: Sequence[Store]) -> bool:
    """Whether a scan is all that is stored, in memory that it does not read."""
    store = stores[0]
    if len(stores) > 1 or store.value is not scan or store.saver != "saveto":
        return False
    leaves = [n for n in postorder([scan]) if isinstance(n, Buffer)]
    apart = not any(overlap(store.dest, leaf) for leaf in leaves)
    return apart and compute_dtype(scan.dtype) is scan.dtype
