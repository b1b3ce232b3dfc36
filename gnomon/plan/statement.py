"""Statements: what the compiler is given, and what of it decides the code.

A group of `Store`s means: all values are taken first, then all are stored. `Structure` separates
what code depends on (`key`) from what it is given at each call: the leaves' addresses, sizes,
strides and numbers. Sizes are told apart by value alone: two axes of one size are one kernel
argument, but where each is `Apart`. 0, and 1 where it is not `Apart`, are part of the key, since
they mean other code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, Self, TypeAlias

from gnomon.expr.composite import Composite
from gnomon.expr.layout import UNIT
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.term import distinct
from gnomon.expr.walk import postorder
from gnomon.ground.record import record

Saver: TypeAlias = Literal["saveto", "plusto", "minusto", "multo", "divto", "putto"]
SAVERS: dict[str, str | None] = {
    "saveto": None,
    "plusto": "add",
    "minusto": "sub",
    "multo": "mul",
    "divto": "div",
}
PUT: Saver = "putto"  # a scatter, no two of whose elements meet: what it leaves out stays as it is


@record(eq=False)
class Store:
    """`dest saver value`, such as `dest += value` for plusto; of one shape and dtype."""

    dest: Buffer
    saver: Saver
    value: Expr


class Apart(int):
    """A size that is a kernel argument of its own, whatever its value: those of one number are."""

    number: int

    def __new__(cls, size: int, number: int) -> Self:
        made = super().__new__(cls, size)
        made.number = number
        return made


class Axis(Apart):
    """The size of axis `number`."""


class Structure:
    """A group of statements, read once: its `key`, and the leaves in the order of their slots."""

    __slots__ = (
        "_buffers",
        "_leaves",
        "_numbers",
        "_sizes",
        "buffers",
        "composite",
        "dims",
        "entries",
        "flat",
        "key",
        "positions",
        "scalars",
    )

    def __init__(self, stores: Sequence[Store]) -> None:
        self.buffers: list[Buffer] = []
        self.scalars: list[Scalar] = []
        self.positions: dict[int, int] = {}
        self.dims: list[int] = []
        self.entries: list[Hashable] = []
        self.flat = True
        self.composite = False  # whether there is anything but maps of leaves
        self._numbers: dict[int, int] = {}
        self._buffers: dict[Hashable, int] = {}
        self._leaves: dict[Hashable, int] = {}
        self._sizes: dict[Hashable, int] = {}
        for node in postorder([e for s in stores for e in (s.value, s.dest)]):
            self._enter(node)
        tail = [(self._numbers[id(s.dest)], s.saver, self._numbers[id(s.value)]) for s in stores]
        self._flatten()
        self.key: Hashable = (tuple(self.entries), tuple(tail))

    def slot(self, buffer: Buffer) -> int:
        """The slot of a leaf."""
        return self._buffers[identity(buffer)]

    def size(self, n: int) -> Hashable:
        """What stands for the size `n` in the key: 0 and 1 themselves, else a number."""
        number = n.number if isinstance(n, Apart) else None
        if n == 0 or (n == 1 and number is None):
            return int(n)
        which = (number, int(n))
        found = self._sizes.get(which)
        if found is None:
            found = self._sizes[which] = len(self.dims)
            self.dims.append(n)
        return ("n", found)

    def _enter(self, node: Expr) -> None:
        """The number and the entry of a node whose operands have theirs."""
        numbers, number = self._numbers, len(self.entries)
        if isinstance(node, Buffer):  # several handles of the same memory are one leaf
            known = numbers[id(node)] = self._leaves.setdefault(identity(node), number)
            if known < number:
                return
        else:
            numbers[id(node)] = number
        self.entries.append(self._entry(node, tuple([numbers[id(c)] for c in node.children])))

    def _entry(self, node: Expr, children: tuple[int, ...]) -> Hashable:
        if isinstance(node, Map):
            return (node.fn.key, children)
        if isinstance(node, Buffer):
            return self._leaf(node)
        if isinstance(node, Scalar):
            self.positions[id(node)] = len(self.scalars)
            self.scalars.append(node)
            return ("scalar", node.dtype.flag)
        if isinstance(node, Cast):
            return ("cast", node.dtype.flag, children)
        assert isinstance(node, Composite), type(node)
        self.flat, self.composite = False, True
        kind, sizes, _ = told(node)
        return (kind, tuple(map(self.size, sizes)), children)

    def _leaf(self, buffer: Buffer) -> Hashable:
        who = identity(buffer)
        slot = self._buffers.get(who)
        if slot is None:
            slot = self._buffers[who] = len(self.buffers)
            self.buffers.append(buffer)
        if self.flat and (buffer.shape != self.buffers[0].shape or not dense(buffer)):
            self.flat = False
        return ("leaf", slot, buffer.dtype.flag)

    def _flatten(self) -> None:
        """A map of dense arrays of one shape is the same code for every shape."""
        if self.flat and self.buffers:
            n = 1
            for extent in self.buffers[0].shape:
                n *= extent
            self.entries.append((self.size(Axis(n, 0)),))
            return
        self.flat = False
        for buffer in self.buffers:
            self.entries.append((tuple(map(self.size, buffer.shape)), buffer.layout))


def told(node: Composite) -> tuple[Hashable, tuple[int, ...], tuple[Expr, ...]]:
    """What of a node decides code, the sizes that are given to it, and the operands."""
    kind = (type(node), distinct(node.static()), len(node.shape), node.clips)
    return kind, (*node.shape, *node.size_values()), node.children


def identity(buffer: Buffer) -> Hashable:
    """Equal for leaves that are the same memory in the same layout."""
    if buffer.address:
        return (buffer.address, buffer.shape, buffer.strides, buffer.dtype.flag)
    return id(buffer)


def dense(buffer: Buffer) -> bool:
    """Whether the elements lie in C order without gaps, as far as the layout class tells."""
    layout = buffer.layout
    if not layout or layout == (UNIT,):
        return True
    return buffer.contiguous


def leaves_of(values: Iterable[Expr]) -> list[Buffer]:
    """The buffers below `values`, each once."""
    from_ids: dict[int, Buffer] = {}
    stack = list(values)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Buffer):
            from_ids[id(node)] = node
        stack.extend(node.children)
    return list(from_ids.values())
