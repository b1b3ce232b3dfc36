"""Norms of whole arrays inside formulas."""

from __future__ import annotations

from gnomon.expr import fn
from gnomon.expr.ext.reduce import broadcast_to, reduce
from gnomon.expr.node import Expr


def square_sum(x: Expr) -> Expr:
    """The sum of all squares of `x`, for each of its elements."""
    return broadcast_to(reduce(x * x, "sum", None, True), x.shape) if x.ndim else x * x


def norm(x: Expr) -> Expr:
    """The Euclidean norm of all of `x`, for each of its elements."""
    return fn.sqrt(square_sum(x))
