"""broadcast_with_axis, broadcast_keepdim: a tensor repeated along a new axis, or along one of 1."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.expr.axes import normal_axis
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.node import Buffer, Expr


def broadcast_with_axis(src: Expr, axis: int, size: int) -> Expr:
    """`src` repeated `size` times along a new axis right behind `axis`; -1 puts it in front.

    >>> broadcast_with_axis(Buffer((2, 3)), 0, 5).shape
    (2, 5, 3)

    Raises:
        ShapeError: there is no such axis, or `size` is below 0.
    """
    if not -1 <= axis < src.ndim:
        expected = f"-1, or an axis of {src!r}"
        raise ShapeError(complaint("broadcast_with_axis", "axis", expected, axis))
    check_size("broadcast_with_axis", size)
    front, back = src.shape[: axis + 1], src.shape[axis + 1 :]
    return broadcast_to(reshape(src, (*front, 1, *back)), (*front, size, *back))


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
    check_size("broadcast_keepdim", size)
    return broadcast_to(src, (*src.shape[:axis], size, *src.shape[axis + 1 :]))


def check_size(where: str, size: int) -> None:
    """A ShapeError unless `size` can be one of an axis."""
    if size < 0:
        raise ShapeError(complaint(where, "size", "a number of at least 0", size))


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield broadcast_with_axis(Buffer((2, 3)), 0, 4)
    yield broadcast_with_axis(Buffer((2, 3)) * 2.0, -1, 2)
    yield broadcast_with_axis(Buffer((3,)), 0, 0)
    yield broadcast_keepdim(Buffer((2, 1, 3)), 1, 4)
    yield broadcast_keepdim(Buffer((2, 1)), -1, 1)
