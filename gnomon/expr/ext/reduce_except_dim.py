"""sum_rows, sumall_except_dim, reduce_except_dim: all axes but one reduced away."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis
from gnomon.expr.ext.reduce import reduce
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import MAXIMUM, PROD, SUM, Reducer
from gnomon.expr.term import Number


@explained
def reduce_except_dim(red: str | Reducer, src: Expr, dim: int, scale: Number = 1) -> Expr:
    """`scale` times what `red` makes of all elements with one index along `dim`: a vector.

    >>> reduce_except_dim("max", Buffer((2, 3, 4)), 1).shape
    (3,)

    Raises:
        ShapeError: there is no such axis.
        GnomonError: there is no such reducer.
        DTypeError: a fractional `scale` of integers.
    """
    dim = normal_axis("reduce_except_dim", dim, src.ndim)
    vector = reduce(src, red, [a for a in range(src.ndim) if a != dim])
    return vector if scale == 1 else vector * scale


@explained
def sumall_except_dim(src: Expr, dim: int) -> Expr:
    """The sum of all elements with one index along `dim`: a vector; raises as reduce_except_dim.

    >>> sumall_except_dim(Buffer((2, 3, 4)), -1).shape
    (4,)
    """
    return reduce_except_dim(SUM, src, dim)


@explained
def sum_rows(src: Expr) -> Expr:
    """The sum of the rows of a matrix: a vector with one element a column.

    >>> sum_rows(Buffer((2, 3))).shape
    (3,)

    Raises:
        ShapeError: `src` is no matrix.
    """
    if src.ndim != 2:
        raise ShapeError(complaint("sum_rows", "src", "a matrix", f"{src!r}"))
    return reduce_except_dim(SUM, src, 1)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield sum_rows(Buffer((3, 4)) * 2.0)
    yield sum_rows(Buffer((0, 4)))
    yield sumall_except_dim(Buffer((2, 3, 4)), 1)
    yield reduce_except_dim(MAXIMUM, Buffer((2, 3, 4)), -1, 0.5)
    yield reduce_except_dim(PROD, Buffer((2, 3)), 0)
    yield reduce_except_dim(SUM, Buffer((5,)), 0, 3.0)
