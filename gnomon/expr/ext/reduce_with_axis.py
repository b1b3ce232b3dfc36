"""reduce_with_axis, reduce_keepdim: one axis reduced away, or to size 1."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon import dtype as dt
from gnomon.base import GnomonError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis
from gnomon.expr.ext.reduce import arg_reduce, reduce
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.expr.reducer import MAXIMUM, MINIMUM, SUM, Reducer


@explained
def reduce_with_axis(
    red: str | Reducer, src: Expr, axis: int, mask: bool = False, keepdim: bool = False
) -> Expr:
    """What `red` makes of the elements along `axis`; with `mask` where the extreme stands.

    The position is an int64: of equals the first, and a NaN comes before every number.

    >>> reduce_with_axis("max", Buffer((2, 3)), 1, mask=True)
    <Reduce 2 int64>

    Raises:
        ShapeError: there is no such axis, or `mask` is asked of an empty one.
        GnomonError: there is no such reducer, or `mask` with another than maximum and minimum.
    """
    axis = normal_axis("reduce_with_axis", axis, src.ndim)
    if not mask:
        return reduce(src, red, axis, keepdim)
    name = red if isinstance(red, str) else red.name
    if name not in (MAXIMUM.name, MINIMUM.name):
        expected = "maximum or minimum, which have a position"
        raise GnomonError(complaint("reduce_with_axis", "mask", expected, name))
    return arg_reduce(src, name, axis, keepdim)


@explained
def reduce_keepdim(red: str | Reducer, src: Expr, axis: int, mask: bool = False) -> Expr:
    """`reduce_with_axis` with the axis kept, of size 1; raises as that does.

    >>> reduce_keepdim("sum", Buffer((2, 3)), 1).shape
    (2, 1)
    """
    return reduce_with_axis(red, src, axis, mask, keepdim=True)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield reduce_with_axis(SUM, Buffer((2, 3, 4)) * 2.0, 1)
    yield reduce_with_axis(MAXIMUM, Buffer((3, 4)), 0)
    yield cast(reduce_with_axis(MINIMUM, Buffer((3, 4)), -1, mask=True), dt.float32)
    yield reduce_keepdim(MINIMUM, Buffer((2, 3, 4)), 1)
    yield cast(reduce_keepdim(MAXIMUM, Buffer((3, 4)), 0, mask=True), dt.float32)
