"""repmat: a vector as every row of a matrix."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.node import Buffer, Expr


@explained
def repmat(src: Expr, nrow: int) -> Expr:
    """The matrix of `nrow` rows that are all the vector `src`.

    >>> repmat(Buffer((3,)), 2).shape
    (2, 3)

    Raises:
        ShapeError: `src` is no vector, or `nrow` is below 0.
    """
    if src.ndim != 1:
        raise ShapeError(complaint("repmat", "src", "a vector", f"{src!r}"))
    return broadcast_to(src, (whole("repmat", "nrow", nrow, 0), *src.shape))


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield repmat(Buffer((3,)), 4)
    yield repmat(Buffer((3,)) * 2.0, 1)
    yield repmat(Buffer((3,)), 0)
