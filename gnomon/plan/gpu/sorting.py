"""Sorting of rows of keys, for machines whose threads have no order.

A key is a number of 64 bits, and no two of a row are equal, so there is nothing to keep stable: the
upper half of a key tells the order of an element (`Keys`), the lower one its position. Elements of
64 bits have two keys; they are sorted by their lower halves first.

Runs of up to `RUN` keys are sorted by the threads of a block, in shared memory (`Sorted`). Where
only the first few of a row are wanted, those of all runs are sorted again, as long as that leaves
half of them or fewer. Then two neighbouring runs become one, again and again: a key's place is how
far on it was in its own run and how many of the other one are before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr import ext
from gnomon.expr.call.order import Order, along
from gnomon.expr.composite import Chainer, Size, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import SUM
from gnomon.expr.term import Arena, Term
from gnomon.plan.cut import Temporary
from gnomon.plan.lower import Expander, Nest, Nested, Root, offset_of
from gnomon.plan.operand import Operand
from gnomon.plan.statement import PUT, Saver, Store
from gnomon.plan.view import reshaped
from gnomon.shape import row_major

RUN = 2048  # keys that a block sorts
HALF = 32  # bits of a key that are a position
LAST = dt.int64.limits[1] >> HALF << HALF | 1 << HALF - 1  # beyond all keys: positions have 31 bits


@composite
class Keys(Chainer):
    """Keys of the elements of each row; of 64 bits by their lower halves where `lower`."""

    src: Expr
    is_ascend: bool
    lower: bool

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.src.shape, dt.int64

    def at(self, i: Index) -> Term:
        arena = i.arena
        code = code_of(arena, i.elem(self.src, i), self.is_ascend)
        half = arena.const(HALF)
        if code.dtype is dt.int32:
            upper = arena.op("shl", arena.cast(code, dt.int64), half)
        elif self.lower:  # which has no sign
            upper = arena.op("shl", code, half)
            upper = arena.op("xor", upper, arena.const(dt.int64.limits[0]))
        else:
            upper = code & arena.const(-1 << HALF)
        return upper | i[1]


def code_of(arena: Arena, value: Term, is_ascend: bool) -> Term:
    """A signed integer of 32 or 64 bits in the order wanted; of -0.0 and 0.0 the same."""
    dtype = value.dtype
    signed = dt.int64 if dtype.size == 8 else dt.int32
    low, high = (arena.const(n, signed) for n in signed.limits)
    if dtype.kind == "f":
        zero = arena.const(0, dtype)
        bits = arena.bitcast(arena.select(value.eq(zero), zero, value), signed)
        code = arena.select(bits < 0, arena.op("xor", bits, high), bits)
    elif dtype.kind == "u" and dtype.size == signed.size:
        code = arena.op("xor", arena.bitcast(value, signed), low)
    else:
        code = arena.cast(value, signed)
    if not is_ascend:
        code = ~code
    return arena.select(value.eq(value), code, high) if dtype.kind == "f" else code


@composite
class Runs(Chainer):
    """Rows as `count` runs of `length`; the last one is filled up with keys that come last."""

    keys: Expr
    count: Size
    length: Size

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (self.keys.shape[0], self.count, self.length), self.keys.dtype

    def at(self, i: Index) -> Term:
        place = i[1] * self.length + i[2]
        key = i.elem(self.keys, (i[0], place))
        return i.guard(place < self.keys.shape[1], key, place + LAST)


@composite
class Sorted(Nested):
    """The keys of each row in order: up to `RUN`, no two of which are equal."""

    keys: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.keys.shape, self.keys.dtype

    def at(self, i: Index) -> Term:
        last = len(self.shape) - 1

        def key(k: Index) -> Term:
            return i.elem(self.keys, i.put(last, k[0]))

        def counted(k: Index) -> Term:
            before = i.fold(SUM, [self.shape[last]], lambda j: i.cast(key(j) < key(k), dt.int64))
            return i.select(before.eq(i[last]), key(k), 0)

        return i.fold(SUM, [self.shape[last]], counted)

    def nest(self, dest: Operand, arena: Arena) -> Nest:
        last = len(self.shape) - 1
        sizes = enumerate(self.shape)
        index = Index([arena.var(n) if n != 1 or a == last else 0 for a, n in sizes], arena)
        key = Expander(arena)(arena.elem(self.keys, index))
        found = arena.make("sort", (key, index[last]), key.dtype)
        variables = tuple(i.payload for i in index if i.op == "var")
        root = Root(dest, "saveto", offset_of(arena, dest, index), found)
        return Nest(variables, (root,), (index[last].payload,))


@composite
class Position(Chainer):
    """The positions that are the lower halves of `keys`."""

    keys: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.keys.shape, dt.int32

    def at(self, i: Index) -> Term:
        return i.cast(i.elem(self.keys, i) & i.arena.const((1 << HALF) - 1), dt.int32)


@composite
class Joined(Chainer):
    """Where a key belongs, among all, when its run of `run` is one with the one beside it.

    Both are sorted; of the last ones in a row there may be less, or one alone. `bits` are those of
    the length of a row.
    """

    keys: Expr
    run: Size
    bits: int

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.keys.shape, dt.int64

    def at(self, i: Index) -> Term:
        arena, zero = i.arena, i.arena.const(0)
        length, run, one = zero + self.keys.shape[1], zero + self.run, zero + 1
        number = i[1] // run
        other = arena.op("xor", number, one) * run
        last = length - 1

        def beside(k: Term) -> Term:
            return i.elem(self.keys, (i[0], arena.op("min", other + k, last)))

        count = arena.op("max", arena.op("min", length - other, run), zero)
        before = below(beside, count, i.elem(self.keys, i), self.bits)
        return i[0] * length + i[1] - (number & one) * run + before


def in_order(
    order: Order, dest: Buffer, saver: Saver, scale: float, temporary: Temporary
) -> list[Store]:
    """Statements that do in turn what `dest saver scale * order` does."""
    src, count = order.src, order.count
    stores: list[Store] = []
    first: Expr | None = None
    if src.dtype.size == 8:
        stores, keys = sort(Keys(src, order.is_ascend, True), src.shape[1], temporary)
        first = Position(keys)
        src = along(src, first)
    more, keys = sort(Keys(src, order.is_ascend, False), count, temporary)
    found: Expr = Position(keys)
    if first is not None:
        found = along(first, found)
    value = found if scale == 1.0 else found * scale
    return [*stores, *more, Store(dest, saver, value)]


def sort(keys: Expr, count: int, temporary: Temporary) -> tuple[list[Store], Buffer]:
    """Statements that sort rows of keys, and where the first `count` of each are then."""
    stores: list[Store] = []
    while True:
        rows, length = keys.shape
        runs = -(-length // RUN)
        run = -(-length // runs)
        value = Sorted(Runs(keys, runs, run))
        now = temporary(value)
        stores.append(Store(now, "saveto", value))
        if runs == 1 or 2 * runs * count > length:
            break
        few = ext.slice_(now, (0, 0, 0), (rows, runs, count))
        keys = ext.reshape(few, (rows, runs * count))
    shape = rows, runs * run
    stores += _merging(reshaped(now, shape), run, temporary)
    now = stores[-1].dest
    first = Buffer((rows, count), now.dtype, row_major(shape), now.address, now, now.device)
    return stores, first


def _merging(keys: Buffer, run: int, temporary: Temporary) -> Iterator[Store]:
    """Statements that make one of all sorted runs of a row."""
    rows, length = keys.shape
    total = rows * length
    now, other = keys, None
    while run < length:
        dest = temporary(reshaped(keys, (total,))) if other is None else other
        place = Joined(now, run, length.bit_length())
        yield Store(dest, PUT, ext.take_grad(place, now, total))
        now, other = reshaped(dest, keys.shape), reshaped(now, (total,))
        run *= 2


def below(keys: Callable[[Term], Term], length: Term, key: Term, bits: int) -> Term:
    """How many of `length` sorted keys, which have as many `bits` at most, are below `key`."""
    arena = length.arena
    found = arena.const(0)
    for bit in reversed(range(bits)):
        tried = found + (1 << bit)
        more = (tried <= length) & (keys(tried - 1) < key)
        found = arena.select(more, tried, found)
    return found
