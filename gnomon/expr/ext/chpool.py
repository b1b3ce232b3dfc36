"""chpool, ch_unpool: what a reducer makes of neighbouring channels, and its gradient.

The channels are the third axis from the end, as in (channel, y, x) and (image, channel, y, x).
"""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.ext.pool import pool, unpool
from gnomon.expr.ext.transpose import swapaxis
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import Reducer


@explained
def chpool(
    red: str | Reducer, src: Expr, nsize: int, stride: int = 1, pad: int | None = None
) -> Expr:
    """What `red` makes of `nsize` channels around every `stride`-th one.

    `red` is 'sum', 'avg', 'max', 'min' or a `Reducer`. `pad` channels outside count as 0 in a
    sum, never as an extreme; the default, half of an odd `nsize`, keeps the number of channels
    where `stride` is 1.

    >>> chpool("sum", Buffer((2, 8, 5, 5)), 3).shape
    (2, 8, 5, 5)

    Raises:
        ShapeError: `src` has no channels, an even `nsize` without `pad`, or no window fits.
        GnomonError: there is no such reducer.
        DTypeError: the mean of integers.
    """
    pad = _pad("chpool", src, nsize, pad)
    pooled = pool(swapaxis(src, -3, -1), red, (nsize,), (stride,), (pad,))
    return swapaxis(pooled, -3, -1)


@explained
def ch_unpool(
    red: str | Reducer,
    src: Expr,
    pooled: Expr,
    grad: Expr,
    nsize: int,
    stride: int = 1,
    pad: int | None = None,
) -> Expr:
    """What the `src` of `chpool` receives where its result receives `grad`: every tie all of it.

    >>> x = Buffer((2, 8, 5, 5))
    >>> ch_unpool("max", x, x, x, 3).shape
    (2, 8, 5, 5)

    Raises:
        ShapeError: as chpool, or `pooled` or `grad` is not what the windows of `src` give.
    """
    pad = _pad("ch_unpool", src, nsize, pad)
    for name, operand in (("pooled", pooled), ("grad", grad)):
        if operand.ndim != src.ndim:
            expected = f"{src.ndim} axes as {src!r}"
            raise ShapeError(complaint("ch_unpool", name, expected, f"{operand!r}"))
    x, y, g = (swapaxis(e, -3, -1) for e in (src, pooled, grad))
    return swapaxis(unpool(red, x, y, g, (nsize,), (stride,), (pad,)), -3, -1)


def _pad(where: str, src: Expr, nsize: int, pad: int | None) -> int:
    if src.ndim < 3:
        expected = "channels: three axes or more"
        raise ShapeError(complaint(where, "src", expected, f"{src!r}"))
    nsize = whole(where, "nsize", nsize, 1)
    if pad is None and nsize % 2 == 0:
        raise ShapeError(complaint(where, "nsize", "an odd number, or a pad", nsize))
    return nsize // 2 if pad is None else pad


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield chpool("sum", Buffer((2, 5, 2, 3)), 3)
    yield chpool("max", Buffer((5, 2, 2)) * 2.0, 3, 2)
    yield chpool("avg", Buffer((4, 1, 3)), 2, 2, 0)
    grad = Buffer((5, 2, 2))
    yield ch_unpool("sum", Buffer((5, 2, 2)), grad, grad, 3)
