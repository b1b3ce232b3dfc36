"""broadcast_axis: a vector along one axis of a shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.node import Buffer, Expr


@explained
def broadcast_axis(src: Expr, shape: Sequence[int], dim: int) -> Expr:
    """The vector `src` along axis `dim` of `shape`, repeated along all others.

    >>> broadcast_axis(Buffer((3,)), (2, 3, 4), 1).shape
    (2, 3, 4)

    Raises:
        ShapeError: `src` is no vector of that axis' size.
    """
    dim = normal_axis("broadcast_axis", dim, len(shape))
    if src.shape != (shape[dim],):
        expected = f"a vector of {shape[dim]}, the size of axis {dim}"
        raise ShapeError(complaint("broadcast_axis", "src", expected, f"{src!r}"))
    thin = [n if a == dim else 1 for a, n in enumerate(shape)]
    return broadcast_to(reshape(src, thin), shape)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield broadcast_axis(Buffer((3,)), (2, 3, 4), 1)
    yield broadcast_axis(Buffer((4,)), (4,), 0)
