"""unpack_patch2col, pack_col2patch: the windows of images as columns of a matrix, and back.

Row (c * kernel_h + y) * kernel_w + x holds what lies at (y, x) in the windows of channel c; there
is one column a window, those of the first image first. Packing adds what overlaps, as the adjoint
must.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import one_each
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import SUM, check_numbers
from gnomon.expr.term import Term
from gnomon.expr.window import places, span
from gnomon.ground.record import record
from gnomon.shape import prod

Pair = tuple[int, ...]


@record()
class Patch:
    """Where the windows lie: a number a spatial axis each."""

    kernel: Pair
    stride: Pair
    dilate: Pair
    pad: Pair

    def counts(self, space: Sequence[int]) -> Pair:
        """How many windows there are along each spatial axis."""
        return places(tuple(space), span(self.kernel, self.dilate), self.stride, self.pad)


@composite
class Unpack(Chainer):
    """(C, kernel..., N, places...) of `src` (N, C, space...)."""

    src: Expr
    patch: Patch

    def infer(self) -> tuple[tuple[int, ...], DType]:
        n, c, *space = self.src.shape
        counts = self.patch.counts(space)
        if min(counts) < 1:
            expected = f"room for one window of {self.patch}"
            raise ShapeError(complaint("unpack_patch2col", "src", expected, f"{self.src!r}"))
        return (c, *self.patch.kernel, n, *counts), self.src.dtype

    def at(self, i: Index) -> Term:
        p, rank = self.patch, len(self.patch.kernel)
        inside = i.arena.const(True, dt.bool_)
        place = []
        for a in range(rank):
            at = i[rank + 2 + a] * p.stride[a] + i[1 + a] * p.dilate[a]
            if p.pad[a]:
                at = at - p.pad[a]
                inside = inside & (at >= 0) & (at < self.src.shape[2 + a])
            place.append(at)
        return i.guard(inside, i.elem(self.src, (i[rank + 1], i[0], *place)), 0)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, Pack(g, self.patch, self.src.shape[2:])),)


@composite
class Pack(Chainer):
    """(N, C, space...): sums of the elements of `src` (C, kernel..., N, places...) from there."""

    src: Expr
    patch: Patch
    space: Sizes

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_numbers("pack_col2patch", "columns", self.src)
        rank = len(self.patch.kernel)
        return (self.src.shape[rank + 1], self.src.shape[0], *self.space), self.src.dtype

    def at(self, i: Index) -> Term:
        p, rank = self.patch, len(self.patch.kernel)
        counts = self.src.shape[rank + 2 :]
        reach = span(p.kernel, p.dilate)
        # at most this many windows hold an element, along each axis
        most = [-(-r // s) for r, s in zip(reach, p.stride, strict=True)]

        def body(back: Index) -> Term:
            inside = i.arena.const(True, dt.bool_)
            window, offset = [], []
            for a in range(rank):
                position = i[2 + a] + p.pad[a]
                at = position // p.stride[a] - back[a]
                within = position - at * p.stride[a]
                inside = inside & (at >= 0) & (at < counts[a]) & (within < reach[a])
                if p.dilate[a] != 1:
                    inside = inside & (within % p.dilate[a]).eq(0)
                    within = within // p.dilate[a]
                window.append(at)
                offset.append(within)
            return i.guard(inside, i.elem(self.src, (i[1], *offset, i[0], *window)), 0)

        return i.fold(SUM, most, body)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, Unpack(g, self.patch)),)


def _patch(where: str, kernel: Pair, stride: Pair, dilate: Pair | None, pad: Pair | None) -> Patch:
    rank = len(kernel)
    dilate, pad = dilate or (1,) * rank, pad or (0,) * rank
    patch = Patch(
        one_each(where, "kernel", kernel, rank),
        one_each(where, "stride", stride, rank),
        one_each(where, "dilate", dilate, rank),
        one_each(where, "pad", pad, rank),
    )
    if min(*patch.kernel, *patch.stride, *patch.dilate) < 1 or min(patch.pad) < 0:
        expected = "kernel, stride, dilate of at least 1, pad of at least 0"
        raise ShapeError(complaint(where, "kernel", expected, patch))
    return patch


@explained
def unpack_patch2col(
    img: Expr,
    kernel: Pair,
    stride: Pair,
    dilate: Pair | None = None,
    pad: Pair | None = None,
) -> Expr:
    """The windows of `img` (N, C, space...) or (C, space...) as columns (C * kernel, N * windows).

    >>> unpack_patch2col(Buffer((2, 3, 8, 8)), (3, 3), (1, 1)).shape
    (27, 72)

    Raises:
        ShapeError: `img` has other axes, or no window fits.
    """
    patch = _patch("unpack_patch2col", kernel, stride, dilate, pad)
    rank = len(patch.kernel)
    if img.ndim == rank + 1:
        img = reshape(img, (1, *img.shape))
    if img.ndim != rank + 2:
        expected = f"{rank} spatial axes after (N, C) or (C)"
        raise ShapeError(complaint("unpack_patch2col", "img", expected, f"{img!r}"))
    whole = Unpack(img, patch)
    return reshape(whole, (prod(whole.shape[: rank + 1]), prod(whole.shape[rank + 1 :])))


@explained
def pack_col2patch(
    columns: Expr,
    shape: Sequence[int],
    kernel: Pair,
    stride: Pair,
    dilate: Pair | None = None,
    pad: Pair | None = None,
) -> Expr:
    """Images of `shape`, (N, C, space...) or (C, space...), with such columns added up.

    >>> pack_col2patch(Buffer((27, 72)), (2, 3, 8, 8), (3, 3), (1, 1)).shape
    (2, 3, 8, 8)

    Raises:
        ShapeError: `columns` are not those of images of this shape.
    """
    patch = _patch("pack_col2patch", kernel, stride, dilate, pad)
    rank = len(patch.kernel)
    if len(shape) not in (rank + 1, rank + 2):
        expected = f"{rank} spatial axes after (N, C) or (C)"
        raise ShapeError(complaint("pack_col2patch", "shape", expected, tuple(shape)))
    n, c, *space = shape if len(shape) == rank + 2 else (1, *shape)
    apart = (c, *patch.kernel, n, *patch.counts(space))
    if columns.shape != (prod(apart[: rank + 1]), prod(apart[rank + 1 :])):
        expected = f"shape {(prod(apart[: rank + 1]), prod(apart[rank + 1 :]))}"
        raise ShapeError(complaint("pack_col2patch", "columns", expected, f"{columns!r}"))
    return reshape(Pack(reshape(columns, apart), patch, tuple(space)), shape)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield unpack_patch2col(Buffer((2, 3, 6, 5)), (3, 2), (1, 1))
    yield unpack_patch2col(Buffer((1, 2, 7, 7)), (3, 3), (2, 3), (2, 1), (1, 2))
    yield unpack_patch2col(Buffer((2, 9)), (3,), (2,))
    yield pack_col2patch(Buffer((8, 18)), (2, 2, 4, 4), (2, 2), (1, 1))
    yield pack_col2patch(Buffer((4, 10)), (1, 5, 6), (2, 2), (2, 1), (3, 1), (1, 0))
