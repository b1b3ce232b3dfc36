"""Extensions as the tensor language spells them: reducer or index first, single numbers for pairs.

`gnomon.expr.ext` holds what they are; here stands only how they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.expr import ext
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.node import Expr
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Number

Pair = int | Sequence[int]


def pair(where: str, name: str, value: Pair) -> tuple[int, int]:
    """One number for both directions, or (y, x)."""
    both = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(both) != 2:
        raise ShapeError(complaint(where, name, "a number or (y, x)", both))
    return whole(where, name, both[0]), whole(where, name, both[1])


@explained
def crop(e: Expr, size: Pair, y0: int | None = None, x0: int | None = None) -> Expr:
    """The part of `size` (h, w) along the last two axes, from (y0, x0), or from the middle.

    >>> from gnomon.expr.node import Buffer
    >>> crop(Buffer((3, 8, 8)), (4, 6), 0, 2).shape
    (3, 4, 6)

    Raises:
        ShapeError: the part does not lie inside.
    """
    if (y0 is None) != (x0 is None):
        raise ShapeError(complaint("crop", "y0, x0", "both or none", (y0, x0)))
    start = None if y0 is None or x0 is None else (y0, x0)
    return ext.crop(e, pair("crop", "size", size), start)


@explained
def pad(e: Expr, py: int, px: int | None = None, value: Number = 0) -> Expr:
    """`py` rows above and below, `px` (or `py`) columns left and right, of `value`.

    >>> from gnomon.expr.node import Buffer
    >>> pad(Buffer((3, 4, 5)), 1, 2).shape
    (3, 6, 9)

    Raises:
        ShapeError: a number below 0, or no two axes.
    """
    if e.ndim < 2:
        raise ShapeError(complaint("pad", "e", "two axes or more", f"{e!r}"))
    py = whole("pad", "py", py)
    around = (*[0] * (e.ndim - 2), py, py if px is None else px)
    return ext.pad(e, around, around, value)


@explained
def pool(red: str | Reducer, e: Expr, ksize: Pair, stride: Pair, pad: Pair = 0) -> Expr:
    """What 'sum', 'avg', 'max', 'min' or a `Reducer` makes of every window of `ksize`.

    Windows lie along the last two axes; padding counts as 0 in sums, never as an extreme.

    >>> from gnomon.expr.node import Buffer
    >>> pool("max", Buffer((2, 8, 8)), 2, (2, 2)).shape
    (2, 4, 4)

    Raises:
        ShapeError: the windows do not fit.
        GnomonError: there is no such reducer.
    """
    sizes = (pair("pool", "ksize", ksize), pair("pool", "stride", stride), pair("pool", "pad", pad))
    return ext.pool(e, red, *sizes)


@explained
def unpool(
    red: str | Reducer,
    src: Expr,
    pooled: Expr,
    grad: Expr,
    ksize: Pair,
    stride: Pair,
    pad: Pair = 0,
) -> Expr:
    """What the operand `src` of `pool` receives for `grad`: of an extreme, every tie all of it.

    >>> from gnomon.expr.node import Buffer
    >>> x, y = Buffer((2, 8, 8)), Buffer((2, 4, 4))
    >>> unpool("max", x, y, y, 2, 2).shape
    (2, 8, 8)

    Raises:
        ShapeError: `pooled` or `grad` is not what the windows of `src` give.
        GnomonError: there is no such reducer, or it has no derivative.
    """
    sizes = (
        pair("unpool", "ksize", ksize),
        pair("unpool", "stride", stride),
        pair("unpool", "pad", pad),
    )
    return ext.unpool(red, src, pooled, grad, *sizes)


@explained
def unpack_patch2col(img: Expr, ksize: Pair, stride: Pair, dilate: Pair = 1, pad: Pair = 0) -> Expr:
    """The windows of images (N, C, h, w) or (C, h, w), with zeros around, as columns.

    >>> from gnomon.expr.node import Buffer
    >>> unpack_patch2col(Buffer((2, 3, 8, 8)), 3, 1).shape
    (27, 72)

    Raises:
        ShapeError: `img` has other axes, or no window fits.
    """
    where = "unpack_patch2col"
    sizes = (pair(where, "ksize", ksize), pair(where, "stride", stride))
    around = (pair(where, "dilate", dilate), pair(where, "pad", pad))
    return ext.unpack_patch2col(img, *sizes, *around)


@explained
def pack_col2patch(
    columns: Expr,
    shape: Sequence[int],
    ksize: Pair,
    stride: Pair,
    dilate: Pair = 1,
    pad: Pair = 0,
) -> Expr:
    """Images of `shape` with such columns added up.

    >>> from gnomon.expr.node import Buffer
    >>> pack_col2patch(Buffer((27, 72)), (2, 3, 8, 8), 3, 1).shape
    (2, 3, 8, 8)

    Raises:
        ShapeError: `columns` are not those of images of this shape.
    """
    where = "pack_col2patch"
    sizes = (pair(where, "ksize", ksize), pair(where, "stride", stride))
    around = (pair(where, "dilate", dilate), pair(where, "pad", pad))
    return ext.pack_col2patch(columns, shape, *sizes, *around)


@explained
def take(index: Expr, w: Expr) -> Expr:
    """The rows of `w` that the integers of `index` name; one outside is the nearest inside.

    >>> from gnomon.expr.node import Buffer
    >>> take(Buffer((5,), dt.int32), Buffer((9, 4))).shape
    (5, 4)

    Raises:
        ShapeError: `w` has no rows.
        DTypeError: `index` holds no integers.
    """
    return ext.take(w, index)


@explained
def one_hot_encode(index: Expr, n: int, dtype: Any = dt.default_real) -> Expr:
    """Rows of `n`: 1 at the place that `index` names, else 0.

    >>> from gnomon.expr.node import Buffer
    >>> one_hot_encode(Buffer((5,), dt.int32), 10).shape
    (5, 10)

    Raises:
        DTypeError: `index` holds no integers.
    """
    return ext.one_hot(index, n, dt.of(dtype))


@explained
def range(
    start: Number,
    stop: Number | None = None,
    step: Number = 1,
    repeat: int = 1,
    dtype: Any = dt.default_real,
) -> Expr:
    """`start`, `start + step`, ... before `stop`, each `repeat` times; of one number: 0 up to it.

    >>> range(0, 3, 1, 2).shape
    (6,)

    Raises:
        ShapeError: a step of 0, a number that is not finite, or a repeat below 1.
        DTypeError: fractional numbers of an integer dtype.
    """
    return ext.range_(start, stop, step, repeat, dt.of(dtype))
