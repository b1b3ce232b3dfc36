"""Algebraic clean-up: operators that give what they read, and pairs that cancel, go away.

Only what is exact in every bit goes: `x * 1`, but not `x + 0`, which turns -0 into 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gnomon.graph.node import Entry, Node
from gnomon.graph.typed_graph import Purpose, Rewriter, Shape, TypedGraph
from gnomon.ops import registry


class Facts(NamedTuple):
    """What a rule may ask for beside the node."""

    rewriter: Rewriter
    purpose: Purpose


Rule = Callable[[Node, Facts], Entry | None]


def simplify(typed: TypedGraph, purpose: Purpose) -> TypedGraph:
    """`typed` without operators that do nothing.

    A rule says what stands for the first output of a node; it sees the node with its new inputs.
    """
    rewriter = Rewriter(typed)
    facts = Facts(rewriter, purpose)
    for old in typed.graph.topo:
        node = old if old.op is None else rewriter.reread(old)
        rule = None if node.op is None else RULES.get(node.op.name)
        simpler = None if rule is None else rule(node, facts)
        rewriter.put(old.entries(), node.entries())
        if simpler is not None:
            rewriter.put(old.entries()[:1], [simpler])
    return rewriter.done()


def _source(node: Node, facts: Facts) -> Entry:
    return node.inputs[0]


def _without_gradient(node: Node, facts: Facts) -> Entry | None:
    """What matters to gradients alone does nothing where there are none."""
    return None if facts.purpose.differentiate else node.inputs[0]


def _dropout(node: Node, facts: Facts) -> Entry | None:
    """Dropout passes everything in prediction; its mask is read by its gradient alone."""
    idle = not facts.purpose.differentiate and not node.op.drops(facts.purpose.train)
    return node.inputs[0] if idle else None


def _neutral(number: float) -> Rule:
    def rule(node: Node, facts: Facts) -> Entry | None:
        same = facts.rewriter.types[node.inputs[0]] is facts.rewriter.types[Entry(node, 0)]
        return node.inputs[0] if same and node.op.scalar == number else None

    return rule


def _cast(node: Node, facts: Facts) -> Entry | None:
    types = facts.rewriter.types
    return node.inputs[0] if types[node.inputs[0]] is types[Entry(node, 0)] else None


def _reshape(node: Node, facts: Facts) -> Entry | None:
    shapes = facts.rewriter.shapes
    return node.inputs[0] if shapes[node.inputs[0]] == shapes[Entry(node, 0)] else None


def _transpose(node: Node, facts: Facts) -> Entry | None:
    """The transpose of a transpose is one transpose, or none."""
    before = node.inputs[0].node
    if before.op is None or before.op.name != "transpose":
        return None
    ndim = len(facts.rewriter.shapes[Entry(node, 0)])
    inner, outer = _axes(before, ndim), _axes(node, ndim)
    axes = tuple(inner[a] for a in outer)
    if axes == tuple(range(ndim)):
        return before.inputs[0]
    op = registry.find("transpose").parse({"axes": axes})
    new = Node(op, node.name, before.inputs, node.attrs)
    return Entry(facts.rewriter.made(new, node.entries()), 0)


def _axes(node: Node, ndim: int) -> Shape:
    return tuple(a % ndim for a in node.op.axes or range(ndim - 1, -1, -1))


def _negative(node: Node, facts: Facts) -> Entry | None:
    before = node.inputs[0].node
    again = before.op is not None and before.op.name == "negative"
    return before.inputs[0] if again else None


def _only_one(node: Node, facts: Facts) -> Entry | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


RULES: dict[str, Rule] = {
    "_copy": _source,
    "BlockGrad": _without_gradient,
    "make_loss": _without_gradient,
    "MakeLoss": _without_gradient,
    "Dropout": _dropout,
    "_mul_scalar": _neutral(1),
    "_div_scalar": _neutral(1),
    "_power_scalar": _neutral(1),
    "_minus_scalar": _neutral(0),
    "Cast": _cast,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "transpose": _transpose,
    "negative": _negative,
    "add_n": _only_one,
    "Concat": _only_one,
}
