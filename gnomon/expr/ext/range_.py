"""range_: numbers at one distance, each as often as wished."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.composite import Chainer, Size, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Expr, as_expr
from gnomon.expr.term import Number, Term


@composite
class Range(Chainer):
    """Element i is `start + (i // repeat) * step`."""

    start: Expr
    step: Expr
    count: Size
    repeat: Size

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (self.count,), self.start.dtype

    def at(self, i: Index) -> Term:
        start, step = i.elem(self.start, ()), i.elem(self.step, ())
        return start + i.arena.cast(i[0] // self.repeat, start.dtype) * step


@explained
def range_(
    start: Number,
    stop: Number | None = None,
    step: Number = 1,
    repeat: int = 1,
    dtype: DType = dt.float32,
) -> Expr:
    """`start`, `start + step`, ... before `stop`, each `repeat` times; of one number: 0 up to it.

    >>> range_(0, 3, repeat=2).shape, range_(5).shape
    ((6,), (5,))

    Raises:
        ShapeError: a step of 0, a number that is not finite, or a repeat below 1.
        DTypeError: fractional numbers of an integer dtype.
    """
    dtype = dt.of(dtype)
    if stop is None:
        start, stop = 0, start
    if not all(map(math.isfinite, (start, stop, step))):
        expected = "finite numbers"
        raise ShapeError(complaint("range", "start, stop, step", expected, (start, stop, step)))
    if step == 0:
        raise ShapeError(complaint("range", "step", "a step other than 0", step))
    repeat = whole("range", "repeat", repeat, 1)
    count = max(0, math.ceil((stop - start) / step)) * repeat
    return Range(as_expr(start, dtype), as_expr(step, dtype), count, repeat)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield range_(5)
    yield range_(-1.5, 2.0, 0.5, 3)
    yield range_(7, 0, -2)
    yield range_(3, 3)
