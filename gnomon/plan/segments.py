"""Scatters by sorted segments: what belongs to a row is brought together, and summed there.

For machines whose threads have no order, and are too many to go through all elements one after
the other. Each element's row and number are one key; sorted, those of a row are a segment, in the
order of the elements, whose ends are found by halving. So all rows are summed at once, and sums
are the same in each run. Where a row has very many elements, pieces of it are summed before.

Sorting is made of statements as well: runs of `RUN` keys by counting the smaller ones, then runs
twice as long again and again, where a key's place is how far on it was in its own run and how many
of the other one are before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr import ext, fn
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.ext.take import TakeGrad
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr, Scalar, cast
from gnomon.expr.reducer import SUM
from gnomon.expr.term import Arena, Term
from gnomon.plan.cut import Temporary
from gnomon.plan.lower import Expander
from gnomon.plan.statement import PUT, Store
from gnomon.plan.terms import postorder
from gnomon.plan.view import views
from gnomon.shape import prod

RUN = 256  # keys that are sorted by looking at each for each
PIECE = 64  # keys whose elements are summed by a thread of their own, if all are of one row


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
    if len(stores) > 1 or store.saver == PUT or not isinstance(value, TakeGrad):
        return [list(stores)]
    count = prod(value.index.shape)
    if value.rows < 2 or not count:  # nothing to sort
        return [list(stores)]
    row = fn.clip(cast(ext.reshape(value.index, (count,)), dt.int64), 0, value.rows - 1)
    before = list(_sorting(row * count + ext.iota((count,)), temporary))
    keys = before[-1].dest
    first = ext.iota((value.rows + 1,)) * count
    starts = temporary(first)
    whole = Scalar(0, dt.int64), Scalar(count, dt.int64)
    before.append(Store(starts, "saveto", _smaller(keys, *whole, first)))
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


def _sorting(keys: Expr, temporary: Temporary) -> Iterator[Store]:
    """Statements that sort keys, no two of which are equal; the last one's destination has them."""
    (count,) = keys.shape
    number = ext.iota((count,))
    now, other = temporary(keys), temporary(keys)
    yield Store(now, "saveto", keys)
    yield _put(other, _in_run(now, number), now)
    run = RUN
    while run < count:
        now, other = other, now
        yield _put(other, _in_two_runs(now, number, Scalar(run, dt.int64)), now)
        run *= 2


def _put(dest: Buffer, place: Expr, keys: Buffer) -> Store:
    """The statement that puts keys where they belong, each once."""
    return Store(dest, PUT, ext.take_grad(place, keys, dest.shape[0]))


def _in_run(keys: Buffer, number: Expr) -> Expr:
    """Where each key belongs among the `RUN` that it is one of."""
    (count,) = keys.shape
    first = number / RUN * RUN
    of_run = (count, RUN)
    beside = ext.broadcast_axis(first, of_run, 0) + ext.iota(of_run, 1)
    here = fn.lt(ext.take(keys, beside), ext.broadcast_axis(keys, of_run, 0))
    before = fn.where(fn.lt(beside, count), cast(here, dt.int64), 0)
    return first + ext.reduce(before, SUM, 1)


def _in_two_runs(keys: Buffer, number: Expr, run: Expr) -> Expr:
    """Where each key belongs in its run and the one beside it, both of which are sorted."""
    count = keys.shape[0]
    own = number / run * run
    both = own / run / 2 * 2 * run
    first = both + both + run - own  # of the other one
    length = fn.clip(count - first, 0, run)
    return both + number - own + _smaller(keys, first, length, keys)


def _smaller(keys: Buffer, first: Expr, length: Expr, key: Expr) -> Expr:
    """How many of the `length` sorted keys from `first` on are smaller than `key`."""
    found = ext.broadcast_to(Scalar(0, dt.int64), key.shape)
    for bit in reversed(range(keys.shape[0].bit_length())):
        tried = found + (1 << bit)
        more = fn.lt(ext.take(keys, first + tried - 1), key)
        found = fn.where(fn.le(tried, length), fn.where(more, tried, found), found)
    return found
