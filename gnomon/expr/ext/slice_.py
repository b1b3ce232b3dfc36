"""slice_, crop, pad: a part of a tensor, and a tensor as part of a larger one.

They stand together because the adjoint of each is the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import one_each
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.ext.flip import flip
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.term import Number, Term
from gnomon.expr.view import view_of

Bounds = Sequence[int | None]


@composite
class Slice(Chainer):
    """Element i of an axis of the result is element `begin + i * step` of `src`."""

    src: Expr
    begin: Sizes
    to: Sizes
    step: tuple[int, ...]

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.to, self.src.dtype

    def at(self, i: Index) -> Term:
        places = zip(i, self.begin, self.step, strict=True)
        return i.elem(self.src, [x * step + begin for x, begin, step in places])

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        backward = tuple(a for a, step in enumerate(self.step) if step < 0)
        first = tuple(
            b + (n - 1) * s if s < 0 else b
            for b, n, s in zip(self.begin, self.to, self.step, strict=True)
        )
        spacing = tuple(abs(s) for s in self.step)
        return (
            (self.src, Pad(flip(g, backward) if backward else g, first, self.src.shape, spacing)),
        )

    def view(self, src: Buffer) -> Buffer | None:
        strides = [a * b for a, b in zip(src.strides, self.step, strict=True)]
        offset = sum(a * b for a, b in zip(src.strides, self.begin, strict=True))
        return view_of(src, self.shape, strides, 0 if 0 in self.shape else offset)


@composite
class Pad(Chainer):
    """`src` inside a tensor of `value`: its first element at `before`, the others `step` apart."""

    src: Expr
    before: Sizes
    to: Sizes
    step: tuple[int, ...]
    value: Number = 0
    axes: tuple[int, ...] = ()  # what is padded; set by `infer`

    def infer(self) -> tuple[tuple[int, ...], DType]:
        sizes = zip(self.src.shape, self.before, self.to, self.step, strict=True)
        padded = tuple(a for a, (n, b, m, s) in enumerate(sizes) if (n, b, s) != (m, 0, 1))
        object.__setattr__(self, "axes", padded)
        return self.to, self.src.dtype

    def at(self, i: Index) -> Term:
        place = list(i)
        inside = i.arena.const(True, dt.bool_)
        for a in self.axes:
            step, size = self.step[a], i[a].like(self.src.shape[a])
            offset = i[a] - self.before[a]
            inside = inside & (offset >= 0) & (offset < size * step)
            if step != 1:
                inside = inside & (offset % step).eq(0)
            place[a] = offset // step
        return i.guard(inside, i.elem(self.src, place), self.value)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, Slice(g, self.before, self.src.shape, self.step)),)


@explained
def slice_(src: Expr, begin: Bounds, end: Bounds, step: Bounds | None = None) -> Expr:
    """`src[begin:end:step]`, a number or None for each axis; the axes left out are whole.

    >>> slice_(Buffer((5, 6)), (1, None), (4, None), (1, -2)).shape
    (3, 3)

    Raises:
        ShapeError: more numbers than axes, or a step of 0.
    """
    steps: Bounds = (None,) * len(begin) if step is None else step
    if not len(begin) == len(end) == len(steps) <= src.ndim:
        expected = f"as many numbers each, at most the {src.ndim} axes of {src!r}"
        raise ShapeError(complaint("slice", "begin, end, step", expected, (begin, end, step)))
    if 0 in steps:
        raise ShapeError(complaint("slice", "step", "steps other than 0", tuple(steps)))
    whole = [slice(None)] * (src.ndim - len(begin))
    slices = [slice(*row) for row in zip(begin, end, steps, strict=True)] + whole
    ranges = [range(n)[s] for n, s in zip(src.shape, slices, strict=True)]
    if all(r == range(n) for r, n in zip(ranges, src.shape, strict=True)):
        return src
    first = tuple(r.start if r else 0 for r in ranges)
    return Slice(src, first, tuple(map(len, ranges)), tuple(r.step for r in ranges))


@explained
def crop(src: Expr, size: Sequence[int], start: Sequence[int] | None = None) -> Expr:
    """The part of `size` along the last axes of `src`, from `start`, or from the middle.

    >>> crop(Buffer((3, 8, 8)), (4, 6)).shape
    (3, 4, 6)

    Raises:
        ShapeError: the part does not lie inside.
    """
    space = src.shape[src.ndim - len(size) :]
    if start is None:
        start = [(n - m) // 2 for n, m in zip(space, size, strict=False)]
    start = one_each("crop", "start", start, len(size))
    rows = zip(space, size, start, strict=False)
    if len(space) != len(size) or any(b < 0 or m < 0 or b + m > n for n, m, b in rows):
        expected = f"a part of {src!r} from {tuple(start)}"
        raise ShapeError(complaint("crop", "size", expected, tuple(size)))
    front = (0,) * (src.ndim - len(size))
    end = [b + m for b, m in zip(start, size, strict=True)]
    return slice_(src, (*front, *start), (*src.shape[: len(front)], *end))


@explained
def pad(src: Expr, before: Sequence[int], after: Sequence[int], value: Number = 0) -> Expr:
    """`src` with `before` and `after` elements of `value` around it along each axis.

    >>> pad(Buffer((2, 3)), (0, 1), (2, 1)).shape
    (4, 5)

    Raises:
        ShapeError: not one number an axis, or one below 0.
    """
    before = one_each("pad", "before", before, src.ndim)
    after = one_each("pad", "after", after, src.ndim)
    if min(*before, *after, 0) < 0:
        raise ShapeError(complaint("pad", "before, after", "no number below 0", (before, after)))
    to = tuple(b + n + a for b, n, a in zip(before, src.shape, after, strict=True))
    return src if to == src.shape else Pad(src, before, to, (1,) * src.ndim, value)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield slice_(Buffer((5, 6)), (1, 2), (4, 5))
    yield slice_(Buffer((5, 7)), (None, -1), (None, None), (2, -3))
    yield slice_(Buffer((5, 6)), (-2,), (-4,), (-1,))
    yield slice_(Buffer((5, 6)), (3,), (2,))
    yield crop(Buffer((2, 5, 6)), (3, 3))
    yield crop(Buffer((5, 6)), (2, 2), (3, 0))
    yield pad(Buffer((2, 3)), (0, 1), (2, 1), 7)
    yield pad(Buffer((2, 0)), (1, 1), (0, 1))
