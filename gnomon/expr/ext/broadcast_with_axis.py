"""broadcast_with_axis, broadcast_keepdim: a tensor repeated along a new axis, or along one of 1."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis, whole
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.node import Buffer, Expr


@explained
def broadcast_with_axis(src: Expr, axis: int, size: int) -> Expr:
    """`src` repeated `size` times along a new axis right behind `axis`; -1 puts it in front.

    >>> broadcast_with_axis(Buffer((2, 3)), 0, 5).shape
    (2, 5, 3)

    Raises:
        ShapeError: there is no such axis, or `size` is below 0.
    """
    axis = whole("broadcast_with_axis", "axis", axis)
    if not -1 <= axis < src.ndim:
        expected = f"an axis from -1 to {src.ndim - 1}"
        raise ShapeError(complaint("broadcast_with_axis", "axis", expected, axis))
    size = whole("broadcast_with_axis", "size", size, 0)
    front, back = src.shape[: axis + 1], src.shape[axis + 1 :]
    return broadcast_to(reshape(src, (*front, 1, *back)), (*front, size, *back))


@explained
def broadcast_keepdim(src: Expr, axis: int, size: int) -> Expr:
    """`src`, of size 1 along `axis`, repeated `size` times along it.

    >>> broadcast_keepdim(Buffer((2, 1, 3)), 1, 5).shape
    (2, 5, 3)

    Raises:
        ShapeError: there is no such axis, its size is not 1, or `size` is below 0.
    """
    axis = normal_axis("broadcast_keepdim", axis, src.ndim)
    if src.shape[axis] != 1:
        expected = f"size 1 along axis {axis}"
        raise ShapeError(complaint("broadcast_keepdim", "src", expected, f"{src!r}"))
    size = whole("broadcast_keepdim", "size", size, 0)
    return broadcast_to(src, (*src.shape[:axis], size, *src.shape[axis + 1 :]))


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield broadcast_with_axis(Buffer((2, 3)), 0, 4)
    yield broadcast_with_axis(Buffer((2, 3)) * 2.0, -1, 2)
    yield broadcast_with_axis(Buffer((3,)), 0, 0)
    yield broadcast_keepdim(Buffer((2, 1, 3)), 1, 4)
    yield broadcast_keepdim(Buffer((2, 1)), -1, 1)
