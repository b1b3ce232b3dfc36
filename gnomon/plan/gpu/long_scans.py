"""Scans of few long rows in pieces, for machines whose threads have no order.

A row is the work of a group of threads, or of one thread where it is not dense in memory, and few
of these leave most of a GPU idle. So what each piece comes to is computed first, then what all
pieces before it come to, and then each piece is scanned from there on. Sizes alone say what the
pieces are: results are the same in each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from gnomon.dtype import DType
from gnomon.expr import ext
from gnomon.expr.composite import Chainer, Size, composite
from gnomon.expr.ext.scan import Scan
from gnomon.expr.index import Index
from gnomon.expr.node import Expr
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena, Term
from gnomon.plan.carry import is_associative, left_by
from gnomon.plan.cut import Temporary
from gnomon.plan.lower import Expander, Nest, Nested, Root, offset_of
from gnomon.plan.operand import Operand
from gnomon.plan.statement import Store
from gnomon.shape import prod

PIECE = 4096  # elements that are worth a group of threads
ALIGNED = 16  # elements that a piece is a multiple of, so that it is moved by whole vectors
GROUPS = 1024  # that keep a GPU busy
STEPS = 1024  # that are too many for a thread, where there are fewer than
THREADS = 1 << 14


@composite
class PieceTotals(Chainer):
    """What each of `count` pieces of `length` along an axis comes to; the last may have fewer."""

    src: Expr
    reducer: Reducer
    axis: int
    count: Size
    length: Size

    def infer(self) -> tuple[tuple[int, ...], DType]:
        before, after = self.src.shape[: self.axis], self.src.shape[self.axis + 1 :]
        return (*before, self.count, *after), self.src.dtype

    def at(self, i: Index) -> Term:
        first = i[self.axis] * self.length
        left = i.arena.op("min", first.like(0) + self.length, self.src.shape[self.axis] - first)

        def body(k: Index) -> Term:
            return i.elem(self.src, i.put(self.axis, first + k[0]))

        return i.fold(self.reducer, [left], body)


@composite
class ScanFrom(Nested):
    """`scan` of `src`, its source in the order of the scan, in pieces of `length` along its axis.

    `before` is what all pieces before each one come to.
    """

    src: Expr
    before: Expr
    length: Size
    reducer: Reducer
    axis: int
    exclusive: bool
    reverse: bool

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.src.shape, self.src.dtype

    def at(self, i: Index) -> Term:
        scan = Scan(self.src, self.reducer, self.axis, self.exclusive, False)
        return scan.at(i.put(self.axis, self.turned(i[self.axis])))

    def turned(self, place: Term) -> Term:
        """Where in the result a place in the order of the scan is, and the other way round."""
        return self.shape[self.axis] - 1 - place if self.reverse else place

    def nest(self, dest: Operand, arena: Arena) -> Nest:
        axis, zero, new = self.axis, arena.const(0), Expander(arena)
        length, size = zero + self.length, zero + self.shape[axis]
        piece = arena.var(self.before.shape[axis])
        turn = arena.var(arena.op("min", length, size - piece * length))
        start, dense = piece * length, zero + dest.strides[axis] is arena.const(1)
        place = start + turn
        sizes = enumerate(self.shape)
        at = Index([arena.var(n) if n != 1 and a != axis else 0 for a, n in sizes], arena)
        before = new(arena.elem(self.before, at.put(axis, piece)))
        begins = turn < 1
        last = start + arena.op("max", turn - 1, zero)
        if self.exclusive:
            src = new(arena.elem(self.src, at.put(axis, last)))
            first = before
        else:
            src = new(arena.elem(self.src, at.put(axis, place)))
            (first,) = self.reducer.combine(arena, (before,), (src,))
        if dense:
            args = arena.select(begins, first, src), turn
            value = arena.make("scan", args, args[0].dtype, (self.reducer, False))
        else:
            stored = left_by(dest, at.put(axis, self.turned(last)), arena)
            (joined,) = self.reducer.combine(arena, (stored,), (src,))
            value = arena.select(begins, first, joined)
        rows = (i.payload for i in at if i.op == "var")
        offset = offset_of(arena, dest, at.put(axis, self.turned(place)))
        root = Root(dest, "saveto", offset, value)
        return Nest((*rows, piece.payload, turn.payload), (root,), (turn.payload,))


def in_pieces(stores: Sequence[Store], temporary: Temporary) -> list[list[Store]]:
    """Groups that do in turn what the group `stores` does, which may be a scan of few long rows."""
    dest, saver, scan = stores[0].dest, stores[0].saver, stores[0].value
    if len(stores) > 1 or saver != "saveto" or not isinstance(scan, Scan):
        return [list(stores)]
    axis, size = scan.axis, scan.shape[scan.axis]
    rows = prod(scan.shape) // max(1, size)
    if dest.strides[axis] == 1:
        count = min(GROUPS // max(1, rows), -(-size // PIECE))
    else:  # as many steps for a piece as for all pieces
        count = isqrt(size) if rows < THREADS and size > STEPS else 1
    if count < 2 or not is_associative(scan):
        return [list(stores)]
    length = -(-size // count // ALIGNED) * ALIGNED
    count = -(-size // length)
    src = ext.flip(scan.src, axis) if scan.reverse else scan.src
    sums = PieceTotals(src, scan.reducer, axis, count, length)
    totals = temporary(sums)
    earlier = Scan(totals, scan.reducer, axis, True, False)
    before = temporary(earlier)
    value = ScanFrom(src, before, length, scan.reducer, axis, scan.exclusive, scan.reverse)
    found = [(totals, sums), (before, earlier), (dest, value)]
    return [[Store(memory, "saveto", e)] for memory, e in found]
