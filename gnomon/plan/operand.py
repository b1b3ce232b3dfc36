"""Operands: the leaves of a statement as the compiler sees them, sizes and strides being Terms."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

from gnomon.dtype import DType
from gnomon.expr.composite import Composite
from gnomon.expr.index import Index
from gnomon.expr.layout import ANY, KNOWN, ZERO
from gnomon.expr.node import MAPPER, Buffer, Cast, Expr, Map, Scalar, typed
from gnomon.expr.term import Arena, Term, compute_dtype
from gnomon.expr.walk import postorder
from gnomon.ground.record import put
from gnomon.plan.statement import Axis, Store, Structure

Extent: TypeAlias = "int | Term"


class Operand(Buffer):
    """A leaf by slot: `slot` is ("leaf", k) of a statement or ("scratch", k) of the plan itself."""

    __slots__ = ("slot",)
    slot: Hashable

    def __init__(
        self, slot: Hashable, shape: Sequence[Any], strides: Sequence[Any], dtype: DType
    ) -> None:
        super().__init__(shape, dtype, strides)
        put(self, "slot", slot)

    def __repr__(self) -> str:
        return (
            f"{self.slot[0][0]}{self.slot[1]}" if isinstance(self.slot, tuple) else str(self.slot)
        )


class Number(Expr):
    """A scalar argument by its position among the statement's scalars."""

    __slots__ = ("position",)
    position: int

    def __init__(self, position: int, dtype: DType) -> None:
        put(self, "position", position)
        typed(self, (), dtype, MAPPER)

    def at(self, i: Index) -> Term:
        return i.arena.arg(("scalar", self.position), compute_dtype(self.dtype))


class Abstract:
    """The same statements over Operands: nothing in them depends on a particular call."""

    def __init__(self, stores: Sequence[Store], structure: Structure, arena: Arena) -> None:
        self.arena, self.structure = arena, structure
        self.operands = [self.operand(k, b) for k, b in enumerate(structure.buffers)]
        new: dict[Expr, Expr] = {}
        for store in stores:
            for node in postorder([store.value]):
                if node not in new:
                    new[node] = self.convert(node, [new[c] for c in node.children])
        self.stores = [(self.leaf(s.dest), s.saver, new[s.value]) for s in stores]

    def leaf(self, buffer: Buffer) -> Operand:
        return self.operands[self.structure.slot(buffer)]

    def size(self, n: int) -> Extent:
        symbol = self.structure.size(n)
        return self.arena.arg(("dim", symbol[1])) if isinstance(symbol, tuple) else n

    def operand(self, k: int, buffer: Buffer) -> Operand:
        slot = ("leaf", k)
        if self.structure.flat:
            total = 1
            for extent in buffer.shape:
                total *= extent
            return Operand(slot, (self.size(Axis(total, 0)),), (1,), buffer.dtype)
        shape = tuple(map(self.size, buffer.shape))
        return Operand(
            slot, shape, strides_of(self.arena, slot, shape, buffer.layout), buffer.dtype
        )

    def convert(self, node: Expr, children: Sequence[Expr]) -> Expr:
        flat = self.structure.flat
        shape: tuple[Any, ...]
        shape = self.operands[0].shape if flat else tuple(map(self.size, node.shape))
        if isinstance(node, Map):
            return Map(node.fn, tuple(children), shape, node.dtype)
        if isinstance(node, Buffer):
            return self.leaf(node)
        if isinstance(node, Scalar):
            return Number(self.structure.positions[id(node)], node.dtype)
        if isinstance(node, Cast):
            return Cast(children[0], node.dtype, shape)
        assert isinstance(node, Composite)
        return node.rebuild(iter(children), self.size, shape)


def strides_of(
    arena: Arena, slot: Hashable, shape: Sequence[Extent], layout: Sequence[int]
) -> tuple[Extent, ...]:
    """Strides by class: known numbers, products of sizes, or kernel arguments."""
    known: dict[int, Extent] = {kind: step for step, kind in KNOWN.items()}
    known[ZERO] = 0
    strides: list[Extent] = []
    inner: Extent = 1
    for axis in reversed(range(len(shape))):
        kind = layout[axis]
        stride = known.get(kind, inner)
        if kind == ANY:
            stride = arena.arg(("stride", slot, axis))
        strides.append(stride)
        if layout[axis] != ZERO:
            inner = stride * shape[axis]
    return tuple(reversed(strides))
