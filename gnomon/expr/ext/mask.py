"""mask: rows weighted by a vector, mostly of zeros and ones."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.node import Buffer, Expr, cast


@explained
def mask(index: Expr, src: Expr) -> Expr:
    """Row r of `src` times `index[r]`, taken in the dtype of `src`.

    >>> mask(Buffer((5,), dt.bool_), Buffer((5, 3))).shape
    (5, 3)

    Raises:
        ShapeError: `index` has not one number a row.
    """
    if not src.shape or index.shape != src.shape[:1]:
        expected = f"one number a row of {src!r}"
        raise ShapeError(complaint("mask", "index", expected, f"{index!r}"))
    column = reshape(cast(index, src.dtype), (*index.shape, *[1] * (src.ndim - 1)))
    return broadcast_to(column, src.shape) * src


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield mask(Buffer((3,)), Buffer((3, 4)))
    yield mask(Buffer((3,), dt.int32), Buffer((3, 2, 2)) * 2.0)
    yield mask(Buffer((3,), dt.int64), Buffer((3,)))
