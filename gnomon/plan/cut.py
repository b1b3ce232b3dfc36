"""Cutting: statements with calls become calls on buffers, and groups without calls, in turn.

What a call reads is brought into buffers, what it gives goes straight to the destination where
nothing else needs that memory, else into a temporary.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

from gnomon.expr.composite import Call
from gnomon.expr.deferred import Deferred
from gnomon.expr.node import CHAINER, Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.rewrite import substitute
from gnomon.expr.term import compute_dtype
from gnomon.expr.walk import postorder
from gnomon.ground.record import record
from gnomon.plan.statement import Saver, Store, identity
from gnomon.plan.view import unshaped, views
from gnomon.shape import channels_last, is_channels_last


@record()
class Invoke:
    """`dest saver scale * call`, the operands of the call being buffers."""

    call: Call
    dest: Buffer
    saver: Saver
    scale: float


Piece: TypeAlias = "Invoke | list[Store]"

_LEAST, _MOST = 2.0**-126, 2.0**127  # factors of calls, other than 0


Temporary: TypeAlias = Callable[[Expr], Buffer]


class Libraries(Protocol):
    """What the machine's libraries do."""

    def supported(self, call: Call) -> bool:
        """Whether one carries out `call`; else its fallback expression does."""

    def fits(self, call: Call, dest: Buffer) -> bool:
        """Whether it stores a call on buffers straight into memory of the layout of `dest`."""


def cut(stores: Sequence[Store], libraries: Libraries, temporary: Temporary) -> list[Piece]:
    """The pieces that carry out `stores`, in order; unsupported calls as their fallbacks.

    `temporary(e)` gives a buffer with memory for the value of `e`.
    """
    stores = views(stores)
    cutter = _Cutter(stores, libraries, temporary)
    for _ in range(10_000):
        call = cutter.next_call()
        if call is None:
            break
        cutter.take(call)
    else:
        raise RecursionError("a call's fallback leads back to itself")
    rest = [s for s in cutter.stores if s is not None]
    return [*cutter.pieces, *sequence(rest, temporary)]


class _Cutter:
    def __init__(self, stores: Sequence[Store], libraries: Libraries, temporary: Temporary) -> None:
        self.stores: list[Store | None] = list(stores)
        self.libraries, self.temporary = libraries, temporary
        self.pieces: list[Piece] = []

    def next_call(self) -> Call | None:
        """An innermost call: none of its operands contains another."""
        values = [s.value for s in self.stores if s is not None and s.value.exp_type & ~CHAINER]
        return next((n for n in postorder(values) if isinstance(n, Call)), None)

    def take(self, call: Call) -> None:
        """Carry out `call`, or put its fallback in its place."""
        if not self.libraries.supported(call):
            fallback = getattr(call, "fallback", None)
            if fallback is None:
                raise TypeError(f"{type(call).__name__} has neither a library here nor a fallback")
            self.replace(call, fallback())
            return
        operands = [self.operand(e) for e in call.children]
        ready = call.over_operands(operands)
        k = self.root(call)
        straight = k is not None and self.is_free(k, call) and self.fits(ready, k)
        if k is not None and (straight or self.rounds_once(k)):
            store = self.stores[k]
            assert store is not None
            dest = store.dest if straight else self.temporary(store.dest)
            if not straight and store.saver != "saveto":
                self.pieces.append([Store(dest, "saveto", store.dest)])
            self.pieces.append(Invoke(ready, dest, store.saver, scaled(store.value)[1]))
            self.stores[k] = None if straight else Store(store.dest, "saveto", dest)
            return
        home = self.home(call, ready)
        result = self.place(ready) if home is None else home
        self.pieces.append(Invoke(ready, result, "saveto", 1.0))
        self.replace(call, result)

    def replace(self, old: Expr, new: Expr) -> None:
        kept = [s for s in self.stores if s is not None]
        values = substitute([s.value for s in kept], {old: new})
        again = views([Store(s.dest, s.saver, v) for s, v in zip(kept, values, strict=True)])
        fresh = iter(again)
        self.stores = [None if s is None else next(fresh) for s in self.stores]

    def operand(self, e: Expr) -> Buffer:
        """`e` as a buffer: itself, or a temporary that a piece before fills."""
        if isinstance(e, Buffer):
            return e
        value = self.temporary(e)
        self.pieces.append([unshaped(Store(value, "saveto", e))])
        return value

    def home(self, call: Call, ready: Call) -> Buffer | None:
        """The destination of the one statement that reads `call`, where maps of it alone do: they
        go on in place. `ready` is the call on buffers."""
        users = [s for s in self.stores if s is not None and within(call, [s.value])]
        if len(users) != 1:
            return None
        (store,) = users
        dest, nodes = store.dest, postorder([store.value])
        moved = [c for n in nodes if not isinstance(n, (Map, Cast)) for c in n.children]
        alike = dest.shape == call.shape and dest.dtype is call.dtype
        if store.saver != "saveto" or not alike or within(call, moved):
            return None
        others = [x for s in self.stores if s is not None for x in (s.value, s.dest)]
        alive = [n for n in postorder([*others, *ready.children]) if isinstance(n, Buffer)]
        if within(dest, nodes) or any(n is not dest and overlap(dest, n) for n in alive):
            return None
        return dest if self.libraries.fits(ready, dest) else None

    def place(self, call: Call) -> Buffer:
        """A temporary for what a call on buffers gives."""
        made = self.temporary(call)
        if not call.pictures:
            return made
        first = call.children[0]
        assert isinstance(first, Buffer)
        laid = laid_as(first, made)
        return laid if self.libraries.fits(call, laid) else made

    def root(self, call: Call) -> int | None:
        """The statement `dest = scale * call`, if that is all that the call is for."""
        users = [
            k for k, s in enumerate(self.stores) if s is not None and scaled(s.value)[0] is call
        ]
        if len(users) != 1:
            return None
        (k,) = users
        store = self.stores[k]
        assert store is not None
        if store.saver not in ("saveto", "plusto", "minusto"):
            return None
        return None if within(call, self.others(k)) else k

    def is_free(self, k: int, call: Call) -> bool:
        """Whether nothing that is still to be read lies where statement `k` stores `call`."""
        store = self.stores[k]
        assert store is not None
        alive = [n for n in postorder([*self.others(k), *call.children]) if isinstance(n, Buffer)]
        return not any(overlap(store.dest, b) for b in alive)

    def fits(self, call: Call, k: int) -> bool:
        """Whether the library stores a call on buffers straight where statement `k` does."""
        store = self.stores[k]
        assert store is not None
        return self.libraries.fits(call, store.dest)

    def rounds_once(self, k: int) -> bool:
        """Whether a product of half floats joins what statement `k` updates in a temporary."""
        store = self.stores[k]
        assert store is not None
        half = compute_dtype(store.dest.dtype) is not store.dest.dtype
        return half and are_apart([s for s in self.stores if s is not None])

    def others(self, k: int) -> list[Expr]:
        """The values of all statements but one."""
        return [s.value for j, s in enumerate(self.stores) if s is not None and j != k]


def laid_as(first: Buffer, made: Buffer) -> Buffer:
    """A dense buffer for pictures that a call makes of `first`, with its channels last where those
    are: what reads both would go across the memory of one else."""
    if first.contiguous or not is_channels_last(first.shape, first.strides):
        return made
    return Buffer(
        made.shape, made.dtype, channels_last(made.shape), made.address, made.owner, made.device
    )


def are_apart(stores: Sequence[Store]) -> bool:
    """Whether no statement updates what another one has stored."""
    return not any(overlap(a.dest, b.dest) for a, b in itertools.combinations(stores, 2))


def within(node: Expr, values: Sequence[Expr]) -> bool:
    """Whether `values` read a node."""
    return any(n is node for n in postorder(values))


def core(value: Expr) -> Expr:
    """`value` without its scalar factors."""
    return [left for left, _ in _multiples(value)][-1]


def scaled(value: Expr) -> tuple[Expr, float]:
    """`value` as an expression times a number that libraries take as it is meant.

    By 0 they read no operands, where it may be NaN that is multiplied; a number that float32 does
    not have would overflow.
    """
    pairs = itertools.takewhile(lambda p: _LEAST <= abs(p[1]) <= _MOST, _multiples(value))
    return list(pairs)[-1]


def _multiples(value: Expr) -> Iterator[tuple[Expr, float]]:
    """Pairs whose product is `value`: itself, then without factors, divisors and signs."""
    factor = 1.0
    yield value, factor
    while isinstance(value, Map):
        name, last = value.fn.name, value.args[-1]
        if name == "neg":
            factor, value = -factor, last
        elif name in ("mul", "div") and isinstance(last, Scalar):
            if name == "div" and value.dtype.kind != "f":
                break  # not a multiple
            number = _factor(last)
            factor *= number if name == "mul" else 1.0 / number if number else math.inf
            value = value.args[0]
        elif name == "mul" and isinstance(value.args[0], Scalar):
            factor, value = factor * _factor(value.args[0]), last
        else:
            break
        yield value, factor


def _factor(scalar: Scalar) -> float:
    """A number as a factor; while a function is traced all that counts is that it is one."""
    return 1.0 if isinstance(scalar.value, Deferred) else float(scalar.value)


def sequence(stores: Sequence[Store], temporary: Temporary) -> list[Piece]:
    """Groups of one shape, in an order in which no group overwrites what a later one reads."""
    groups: dict[tuple[int, ...], list[Store]] = {}
    for store in stores:
        groups.setdefault(store.dest.shape, []).append(store)
    if len(groups) < 2:
        return list(groups.values())
    before: list[Piece] = []
    pairs = itertools.combinations([s.dest for s in stores], 2)
    crossed = any(a.shape != b.shape and overlap(a, b) for a, b in pairs)
    rest = [[s] for s in stores] if crossed else list(groups.values())  # crossed: in their order
    for number, group in enumerate(rest):
        written = [s.dest for earlier in rest[:number] for s in earlier]
        for k, store in enumerate(group):
            read = [n for n in postorder([store.value]) if isinstance(n, Buffer)]
            if any(overlap(w, b) for w in written for b in read):
                value = temporary(store.value)
                before.append([Store(value, "saveto", store.value)])
                group[k] = Store(store.dest, store.saver, value)
    return [*before, *rest]


def overlap(a: Buffer, b: Buffer) -> bool:
    """Whether the memory of two buffers may have bytes in common."""
    if not a.address or not b.address:
        return identity(a) == identity(b)
    (a0, a1), (b0, b1) = reach(a), reach(b)
    return a0 < b1 and b0 < a1


def reach(buffer: Buffer) -> tuple[int, int]:
    """The first byte of a buffer and the one after its last."""
    low = high = 0
    for n, s in zip(buffer.shape, buffer.strides, strict=True):
        if n == 0:
            return buffer.address, buffer.address
        if s > 0:
            high += (n - 1) * s
        else:
            low += (n - 1) * s
    size = buffer.dtype.size
    return buffer.address + low * size, buffer.address + (high + 1) * size
