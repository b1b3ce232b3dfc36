"""Scatters by sorted segments: what belongs to a row is brought together, and summed there.

For machines whose threads have no order, and are too many to go through all elements one after
the other. Each element's row and number are one key; sorted, those of a row are a segment, in the
order of the elements, whose ends are found by halving. So all rows are summed at once, and sums
are the same in each run.

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


@composite
class SegmentSum(Chainer):
    """Row r is the sum of `source` at what keys `starts[r]` to before `starts[r + 1]` name.

    A key is its row times how many elements there are, and the element's number. How long the loop
    of a row is stands in memory: each thread must have one of its own, as those of GPUs do.
    """

    starts: Expr
    keys: Expr
    source: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (self.starts.shape[0] - 1, *self.source.shape[1:]), self.source.dtype

    def at(self, i: Index) -> Term:
        first, end = (i.elem(self.starts, (i[0] + k,)) for k in range(2))
        before = i[0] * self.source.shape[0]

        def body(k: Index) -> Term:
            number = i.elem(self.keys, (first + k[0],)) - before
            return i.elem(self.source, (number, *i[1:]))

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
    last = Store(store.dest, store.saver, SegmentSum(starts, keys, source))
    return [[s] for s in (*before, *views([last]))]


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
