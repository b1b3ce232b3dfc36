"""broadcast_scalar: one element everywhere in a shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.node import Buffer, Expr
from gnomon.shape import prod


@explained
def broadcast_scalar(src: Expr, shape: Sequence[int]) -> Expr:
    """The only element of `src`, of shape () or (1,), all over `shape`.

    Unlike a number, it is read from memory when the kernel runs.

    >>> broadcast_scalar(Buffer((1,)), (2, 3)).shape
    (2, 3)

    Raises:
        ShapeError: `src` holds not one element along at most one axis, or a size is below 0.
    """
    if src.ndim > 1 or prod(src.shape) != 1:
        raise ShapeError(complaint("broadcast_scalar", "src", "shape () or (1,)", f"{src!r}"))
    shape = checked_sizes("broadcast_scalar", shape)
    if not shape and src.ndim:
        raise ShapeError(complaint("broadcast_scalar", "shape", "at least one axis", ()))
    return broadcast_to(src, shape)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield broadcast_scalar(Buffer((1,)), (2, 3))
    yield broadcast_scalar(Buffer(()) + 1.0, (4,))
    yield broadcast_scalar(Buffer((1,)), (2, 0))
