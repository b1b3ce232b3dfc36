"""Scatters by sorted segments: what belongs to a row is brought together, and summed there.

For machines whose threads have no order, and are too many to go through all elements one after
the other. Each element's row and number are one key; sorted, those of a row are a segment, in the
order of the elements, whose ends are found by halving. So all rows are summed at once, and sums
are the same in each run. Where a row has very many elements, pieces of it are summed before.

How keys are sorted is told in `sorting.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr import ext, fn
from gnomon.expr.composite import Chainer, Size, composite
from gnomon.expr.ext.take import TakeGrad
from gnomon.expr.index import Index
from gnomon.expr.node import Expr, cast
from gnomon.expr.reducer import SUM
from gnomon.expr.term import Arena, Term
from gnomon.plan.cut import Temporary
from gnomon.plan.gpu.sorting import below, sort
from gnomon.plan.lower import Expander
from gnomon.plan.statement import PUT, Store
from gnomon.plan.terms import postorder
from gnomon.plan.view import reshaped, views
from gnomon.shape import prod

PIECE = 64  # keys whose elements are summed by a thread of their own, if all are of one row


@composite
class Starts(Chainer):
    """Where among sorted keys those of each of `rows` rows begin.

    `bits` are those of the number of keys.
    """

    keys: Expr
    rows: Size
    bits: int

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (self.rows,), dt.int64

    def at(self, i: Index) -> Term:
        arena = i.arena
        count = arena.const(0) + self.keys.shape[0]

        def key(k: Term) -> Term:
            return i.elem(self.keys, (arena.op("min", k, count - 1),))

        return below(key, count, i[0] * count, self.bits)


@composite
class PieceSum(Chainer):
    """Piece r is the sum of the elements of `source` that `PIECE` sorted keys name, from key
    r * `PIECE` on; 0 where those are not all of one row."""

    keys: Expr
    source: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (self.keys.shape[0] // PIECE, *self.source.shape[1:]), self.source.dtype

    def at(self, i: Index) -> Term:
        first, count = i[0] * PIECE, self.source.shape[0]
        row, last = (i.elem(self.keys, (first + k,)) // count for k in (0, PIECE - 1))
        length = i.select(row.eq(last), i.arena.const(PIECE), 0)

        def body(k: Index) -> Term:
            number = i.elem(self.keys, (first + k[0],)) - row * count
            return i.elem(self.source, (number, *i[1:]))

        return i.fold(SUM, [length], body)


@composite
class SegmentSum(Chainer):
    """Row r is the sum of the elements of `source` that `numbers` name, from number `starts[r]` to
    before number `starts[r + 1]`; what is in `pieces`, their `PieceSum`, is taken from there.

    How long its loops are stands in memory: each thread must have its own, as those of GPUs do.
    """

    starts: Expr
    numbers: Expr
    source: Expr
    pieces: Expr | None

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (self.starts.shape[0] - 1, *self.source.shape[1:]), self.source.dtype

    def at(self, i: Index) -> Term:
        first, end = (i.elem(self.starts, (i[0] + k,)) for k in range(2))
        pieces, none = self.pieces, i.arena.const(0)
        if pieces is None:
            return self.between(i, first, end)
        piece = (first + (PIECE - 1)) // PIECE  # the first one that is whole
        whole = i.arena.op("max", end // PIECE - piece, none)
        border = i.select(none < whole, piece * PIECE, end)
        found = self.between(i, first, border)
        found = found + i.fold(SUM, [whole], lambda k: i.elem(pieces, (piece + k[0], *i[1:])))
        return found + self.between(i, border + whole * PIECE, end)

    def between(self, i: Index, first: Term, end: Term) -> Term:
        """The sum of what some numbers name."""

        def body(k: Index) -> Term:
            return i.elem(self.source, (i.elem(self.numbers, (first + k[0],)), *i[1:]))

        return i.fold(SUM, [end - first], body)


def in_segments(stores: Sequence[Store], temporary: Temporary) -> list[list[Store]]:
    """Groups that do in turn what the group `stores` does, which may be the adding of a scatter."""
    store, value = stores[0], stores[0].value
    if len(stores) > 1 or store.saver == PUT or not isinstance(value, TakeGrad) or value.once:
        return [list(stores)]
    count = prod(value.index.shape)
    if value.rows < 2 or not count:  # nothing to sort
        return [list(stores)]
    row = fn.clip(cast(ext.reshape(value.index, (count,)), dt.int64), 0, value.rows - 1)
    numbered = ext.reshape(row * count + ext.iota((count,)), (1, count))
    before, rows = sort(numbered, count, temporary)
    keys = reshaped(rows, (count,))
    begin = Starts(keys, value.rows + 1, count.bit_length())
    starts = temporary(begin)
    before.append(Store(starts, "saveto", begin))
    source = value.grad
    if _folds(source):  # once for each element, in loops whose lengths are known beforehand
        source = temporary(source)
        before.append(Store(source, "saveto", value.grad))
    source = ext.reshape(source, (count, *value.shape[1:]))
    pieces = None
    if count >= 2 * PIECE and source.ndim > 1:
        sums = PieceSum(keys, source)
        pieces = temporary(sums)
        before.append(Store(pieces, "saveto", sums))
    before.append(Store(keys, "saveto", keys - keys / count * count))
    last = Store(store.dest, store.saver, SegmentSum(starts, keys, source, pieces))
    return [[s] for s in views([*before, last])]


def _folds(e: Expr) -> bool:
    """Whether an element takes a loop."""
    arena = Arena()
    element = arena.elem(e, Index([arena.var(n) for n in e.shape], arena))
    return any(t.op == "fold" for t in postorder([Expander(arena)(element)]))
