"""Constant folding: what depends on no input is computed once, before anything runs.

What creates constants (`_zeros`, `_arange`) and cheap maps of them cost their readers less than
memory would, and stay; what reduces, multiplies or moves them is computed, unless its result is
larger than what it is made of. Small results are always worth it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gnomon.base import Later
from gnomon.expr.node import Buffer, Expr
from gnomon.graph.node import Entry, Node
from gnomon.graph.typed_graph import Rewriter, TypedGraph, is_map, is_pure
from gnomon.ops.op import Op, describe
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.kernels.workspace import without_workspace
from gnomon.runtime.statements.prepare import Store, prepare

if TYPE_CHECKING:
    from gnomon.runtime.statements import transfer
else:  # for devices with a memory of their own
    transfer = Later("gnomon.runtime.statements.transfer")

SMALL = 4096  # bytes of a result that is always kept: no reader notices them


class Constant(Op):
    """Values that are known, in memory of their own.

    No operator of the users: what a pass makes of operators that depend on no input.
    """

    name = "_constant"
    input_names = ()

    def __init__(self, buffer: Buffer) -> None:
        super().__init__()
        self.__dict__.update(buffer=buffer, _key=(type(self), id(buffer)))

    def forward(self) -> Expr:
        buffer: Buffer = self.buffer
        return buffer


describe(Constant)


def constants(typed: TypedGraph, device: str = "cpu") -> TypedGraph:
    """`typed` with the values in place of what computes constants, where that pays; they lie in the
    memory of a device."""
    found = _Constants(typed)
    folded = [e for e in found.read if found.pays(e)]
    if not folded:
        return typed
    rewriter = Rewriter(typed)
    values = found.values(folded)
    for old in typed.graph.topo:
        node = old if old.op is None else rewriter.reread(old)
        rewriter.put(old.entries(), node.entries())
        for entry in old.entries():
            if entry in values:
                value = _on(device, values[entry])
                made = Node(Constant(value), f"{entry!r}_constant")
                rewriter.put([entry], rewriter.made(made, [entry]).entries())
    return rewriter.done()


def _on(device: str, value: Buffer) -> Buffer:
    """What the processor has computed, in the memory of a device."""
    return value if value.device == device else transfer.sent(value, device)


class _Constants:
    """The nodes that depend on no input: `work` says which are more than a map of what creates
    them, `largest` the bytes of the largest value they are made of."""

    def __init__(self, typed: TypedGraph) -> None:
        self.typed = typed
        self.work: dict[Node, bool] = {}
        self.largest: dict[Node, int] = {}
        for node in typed.graph.topo:
            if is_pure(node) and all(e.node in self.work for e in node.inputs):
                self._enter(node)
        inner = {e for n in self.work for e in n.inputs}
        outside = [n for n in typed.graph.topo if n not in self.work]
        read = [e for n in outside for e in n.inputs if e.node in self.work]
        wanted = [e for e in typed.graph.outputs if e.node in self.work]
        self.read = dict.fromkeys((*read, *(e for e in wanted if e not in inner)))

    def _enter(self, node: Node) -> None:
        typed = self.typed
        sizes = [max(typed.nbytes(e), self.largest[e.node]) for e in node.inputs]
        self.largest[node] = max(sizes, default=0)
        shapes = tuple(typed.shapes[e] for e in node.inputs)
        types = tuple(typed.types[e] for e in node.inputs)
        outs = tuple(typed.shapes[e] for e in node.entries())
        before = any(self.work[e.node] for e in node.inputs)
        creates = not node.inputs
        self.work[node] = before or not (creates or is_map(node.op, shapes, types, outs))

    def pays(self, entry: Entry) -> bool:
        """Whether the value of `entry` is worth its memory."""
        size, node = self.typed.nbytes(entry), entry.node
        if not node.inputs:
            return False
        return 0 < size <= (max(self.largest[node], SMALL) if self.work[node] else SMALL)

    def values(self, wanted: list[Entry]) -> Mapping[Entry, Buffer]:
        """The values of `wanted`, computed now."""
        return without_workspace(lambda: self._values(wanted))

    def _values(self, wanted: list[Entry]) -> Mapping[Entry, Buffer]:
        needed = {e.node for e in wanted}
        for node in reversed(self.typed.graph.topo):
            if node in needed:
                needed.update(e.node for e in node.inputs)
        known: dict[Entry, Expr] = {}
        for node in self.typed.graph.topo:
            if node in needed:
                known.update(self._computed(node, known))
        return {e: known[e] for e in wanted}  # type: ignore[misc]

    def _computed(self, node: Node, known: Mapping[Entry, Expr]) -> dict[Entry, Expr]:
        """What a node gives: expressions of what creates, memory with the values of the rest."""
        context: dict[str, Any] = {"out_shapes": [self.typed.shapes[e] for e in node.entries()]}
        found = node.op.apply([known[e] for e in node.inputs], train=False, **context)
        values = dict(zip(node.entries(), found, strict=True))
        if not node.inputs:
            return values
        stores = [Store(temporary(v), "saveto", v) for v in found]
        for step in prepare(stores, node.name):
            step.run()
        return dict(zip(values, (s.dest for s in stores), strict=True))
