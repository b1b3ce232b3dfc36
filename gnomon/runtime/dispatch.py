"""Statements carried out at once: a short way for maps of dense arrays, the long one for others.

The short way reads the expression once into a key, takes the kernel that was compiled for that key,
fills a block and calls. It is taken where every leaf is dense and has the destination's shape, and
none overlaps the destination but the destination itself. Measured on 2 busy cores (`python
benchmarks/expression.py --only gnomon --rows "sgd 1e+01"`): 15 to 20 us a statement.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from gnomon.expr.layout import UNIT
from gnomon.expr.node import MAPPER, Buffer, Cast, Expr, Map, Scalar
from gnomon.plan.statement import Saver, Store, Structure
from gnomon.runtime import threads
from gnomon.runtime.cache import CACHE
from gnomon.runtime.kernel import GRAIN, Kernel, bits
from gnomon.runtime.native import Block, function, pointer
from gnomon.runtime.prepare import check, prepare

LARGEST = 48  # nodes; beyond, reading into a tree of keys costs more than it saves
KEPT = 2048


class Short(NamedTuple):
    """A kernel for one key: its native function, work an element, and what its arguments take."""

    kernel: Kernel
    call: Any
    cost: int
    slots: tuple[tuple[str, int], ...]


_known: dict[Hashable, Short] = {}


def store(dest: Buffer, saver: Saver, value: Expr) -> None:
    """`dest saver value`, now.

    Raises:
        ShapeError, DTypeError: the value does not fit; the destination is untouched.
    """
    if value.exp_type & ~MAPPER or not _short(dest, saver, value):
        for step in prepare([Store(dest, saver, value)], "assignment"):
            step.run()


class _Reader:
    """Reads an expression into a nested key; leaves and numbers in the order of the general way."""

    __slots__ = ("buffers", "count", "dest", "scalars", "seen")

    def __init__(self, dest: Buffer) -> None:
        self.dest = dest
        self.buffers: list[Buffer] = []
        self.scalars: list[Scalar] = []
        self.seen: dict[int, int] = {}
        self.count = 0

    def key(self, node: Expr) -> Hashable:
        """The key of `node`; LookupError where the short way does not do."""
        self.count += 1
        if self.count > LARGEST:
            raise LookupError
        kind = type(node)
        if kind is Map:
            return (node.fn.key, *[self.key(a) for a in node.args])  # type: ignore[attr-defined]
        if kind is Scalar:
            # a number that occurs twice is one argument of the general way: leave it to that
            if any(node is s for s in self.scalars):
                raise LookupError
            self.scalars.append(node)  # type: ignore[arg-type]
            return node.dtype.flag
        if kind is Cast:
            return (node.dtype.flag, self.key(node.src))  # type: ignore[attr-defined]
        return self.leaf(node)

    def leaf(self, node: Expr) -> Hashable:
        if not isinstance(node, Buffer) or node.shape != self.dest.shape or not dense(node):
            raise LookupError
        if not node.address or node.device != "cpu":
            raise LookupError
        slot = self.seen.get(node.address)
        if slot is None:
            slot = self.seen[node.address] = len(self.buffers)
            self.buffers.append(node)
        elif self.buffers[slot].dtype is not node.dtype:
            raise LookupError
        return (slot, node.dtype.name)


def dense(buffer: Buffer) -> bool:
    """Whether a buffer lies in C order without gaps."""
    layout = buffer.layout
    return layout == (UNIT,) or buffer.contiguous


def _short(dest: Buffer, saver: Saver, value: Expr) -> bool:
    """Carry out the statement the short way; False where it does not do."""
    reader = _Reader(dest)
    try:
        key = (saver, reader.key(value), reader.leaf(dest))
    except LookupError:
        return False
    n = 1
    for extent in dest.shape:
        n *= extent
    if value.dtype is not dest.dtype or n < 2 or not apart(dest, reader.buffers, n):
        return False
    short = _known.get(key)
    if short is None:
        short = _learn(key, dest, saver, value)
        if short is None:
            return False
    tasks = min(threads.num_threads(), 1 + n * short.cost // GRAIN)
    piece = n if tasks == 1 else (-(-n // (4 * tasks)) + 63) // 64 * 64
    words = [threads.parallel_address(), tasks, piece]
    for kind, k in short.slots:
        if kind == "leaf":
            words.append(reader.buffers[k].address)
        else:
            words.append(n if kind == "dim" else bits(reader.scalars[k]))
    short.call(pointer(Block(words).address))
    return True


def apart(dest: Buffer, buffers: list[Buffer], n: int) -> bool:
    """Whether no leaf overlaps the destination, but those that are it."""
    first, last = dest.address, dest.address + n * dest.dtype.size
    for b in buffers:
        if b.address == first and b.dtype is dest.dtype:
            continue
        if b.address < last and first < b.address + n * b.dtype.size:
            return False
    return True


def _learn(key: Hashable, dest: Buffer, saver: Saver, value: Expr) -> Short | None:
    """The kernel of a new key; None where the general way does not see a map of one loop."""
    stores = [Store(dest, saver, value)]
    check(stores[0])
    structure = Structure(stores)
    if not structure.flat:
        return None
    kernel = CACHE.get(stores, structure)
    (loops,) = kernel.signature.phases
    slots = tuple((s[0], s[1]) for s in kernel.signature.args)
    cost = sum(work for work, times in loops.cost if times is None)
    made = Short(kernel, function(kernel.address), cost, slots)
    if len(_known) >= KEPT:
        _known.clear()
    _known[key] = made
    return made
