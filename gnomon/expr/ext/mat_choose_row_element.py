"""mat_choose_row_element: one element of each row of a matrix."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.ext.take import pick
from gnomon.expr.node import Buffer, Expr


@explained
def mat_choose_row_element(src: Expr, index: Expr) -> Expr:
    """Element `index[r]` of row r of the matrix `src`; an index outside is the nearest inside.

    >>> mat_choose_row_element(Buffer((5, 3)), Buffer((5,), dt.int32)).shape
    (5,)

    Raises:
        ShapeError: `src` is no matrix, or `index` has not one number a row.
        DTypeError: `index` holds no integers.
    """
    if src.ndim != 2:
        raise ShapeError(complaint("mat_choose_row_element", "src", "a matrix", f"{src!r}"))
    return pick(src, index)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield mat_choose_row_element(Buffer((5, 3)) * 2.0, Buffer((5,), dt.int64))
