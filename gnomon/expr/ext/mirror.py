"""mirror: a tensor with its last axis reversed, as images are mirrored left to right."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.ext.flip import flip
from gnomon.expr.node import Buffer, Expr


@explained
def mirror(src: Expr) -> Expr:
    """`src` reversed along its last axis.

    >>> mirror(Buffer((2, 3))).shape
    (2, 3)

    Raises:
        ShapeError: `src` has no axis.
    """
    if not src.shape:
        raise ShapeError(complaint("mirror", "src", "at least one axis", f"{src!r}"))
    return flip(src, -1)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield mirror(Buffer((2, 3, 4)) * 2.0)
    yield mirror(Buffer((5,)))
