"""Differentiation: gradients of expressions, as expressions, by one walk from outputs to inputs."""

from __future__ import annotations

from collections.abc import Sequence

from gnomon.expr.node import Expr
from gnomon.expr.walk import postorder


def vjp(
    outputs: Sequence[Expr], out_grads: Sequence[Expr], inputs: Sequence[Expr]
) -> list[Expr | None]:
    """What each of `inputs` receives when `outputs` receive `out_grads`; None: nothing.

    >>> from gnomon.expr.node import Buffer
    >>> x, g = Buffer((3,)), Buffer((3,))
    >>> (gx,) = vjp([x * 2.0], [g], [x])
    >>> gx.shape
    (3,)
    """
    order = postorder(outputs)
    wanted = reaching(order, inputs)
    grads: dict[Expr, Expr] = {}
    for out, g in zip(outputs, out_grads, strict=True):
        accumulate(grads, out, g)
    for node in reversed(order):
        if node not in grads or node not in wanted:
            continue
        for child, g in node.adjoint(grads[node]):
            if child in wanted:
                accumulate(grads, child, g)
    return [grads.get(x) for x in inputs]


def accumulate(grads: dict[Expr, Expr], node: Expr, g: Expr) -> None:
    """Add `g` to what `node` has received so far."""
    grads[node] = grads[node] + g if node in grads else g


def reaching(order: Sequence[Expr], inputs: Sequence[Expr]) -> set[Expr]:
    """The nodes of `order` (operands first) that depend on one of `inputs`."""
    wanted = set(inputs)
    for node in order:
        if any(child in wanted for child in node.children):
            wanted.add(node)
    return wanted
