"""Rewriting: the same expression with some of its nodes replaced."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from gnomon.base import ShapeError, complaint
from gnomon.expr.composite import Composite
from gnomon.expr.node import MAPPER, Cast, Expr, Map, typed
from gnomon.expr.walk import fits_any, postorder, shown
from gnomon.ground.record import put


def substitute(
    roots: Sequence[Expr], replace: Mapping[Expr, Expr], order: Sequence[Expr] | None = None
) -> list[Expr]:
    """`roots` with every node of `replace` exchanged; what does not change stays the same.

    `order` are all nodes below `roots`, operands first, where they are known.
    """
    new: dict[Expr, Expr] = {}
    for node in postorder(roots) if order is None else order:
        found, children = replace.get(node), node.children
        if found is None:
            found = with_children(node, [new[c] for c in children]) if children else node
        new[node] = found
    return [new[root] for root in roots]


def with_children(node: Expr, children: Sequence[Expr]) -> Expr:
    """`node` over other operands of the same shapes and dtypes."""
    if all(map(operator.is_, node.children, children)):
        return node
    if isinstance(node, Map):
        return _again(node, tuple(children))
    if isinstance(node, Cast):
        return Cast(children[0], node.dtype)
    assert isinstance(node, Composite)
    return node.over_operands(children)


def _again(node: Map, args: tuple[Expr, ...]) -> Map:
    """The same function of other operands, which need not be looked at: they are alike."""
    made, mask = object.__new__(Map), MAPPER
    put(made, "fn", node.fn)
    put(made, "args", args)
    for arg in args:
        mask |= arg.exp_type
    typed(made, node.shape, node.dtype, mask)
    return made


def check_sizes(roots: Sequence[Expr]) -> None:
    """Raises where an operand has changed its shape since an expression was made of it.

    Raises:
        ShapeError: names the expression and the operand.
    """
    for node in postorder(roots):
        if isinstance(node, Composite):
            stale = tuple(node.infer()[0]) != node.shape or not node.stays_inside()
        else:
            stale = any(c.shape != node.shape and not fits_any(c) for c in node.children)
        if stale:
            expected = f"operands as they were when it was made: {node.shape}"
            raise ShapeError(complaint(node.label, "operands", expected, shown(node)))


def leaves(roots: Sequence[Expr]) -> list[Expr]:
    """The nodes without operands, in the order of their first use."""
    return [node for node in postorder(roots) if not node.children]
