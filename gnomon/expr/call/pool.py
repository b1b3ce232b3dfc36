"""max_pool, avg_pool: the largest element and the mean of every window, 1 to 3 spatial axes.

Of several largest elements the first takes the gradient. With `full` the last window may hang over
the padding; what lies beyond the padding is never counted in a mean, the padding itself where
`counted` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import Later, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import fn
from gnomon.expr.composite import Call, Chainer, composite
from gnomon.expr.ext.pool import pool
from gnomon.expr.ext.reduce import reduce
from gnomon.expr.index import Index
from gnomon.expr.node import Expr
from gnomon.expr.reducer import ARGMAX, SUM
from gnomon.expr.term import Term, compute_dtype
from gnomon.expr.window import Sizes, places, windows
from gnomon.ground.record import record
from gnomon.shape import prod

if TYPE_CHECKING:
    import ml_dtypes
else:
    ml_dtypes = Later("ml_dtypes")

Array = np.ndarray[Any, Any]


@record()
class Window:
    """Where the windows of a pooling lie."""

    kernel: Sizes
    stride: Sizes
    pad: Sizes
    full: bool = False

    @property
    def most(self) -> list[int]:
        """How many windows hold an element at most, along each axis."""
        return [-(-k // s) for k, s in zip(self.kernel, self.stride, strict=True)]

    def counts(self, space: Sizes) -> Sizes:
        """How many windows there are along each axis."""
        return places(space, self.kernel, self.stride, self.pad, self.full)

    def apart(self, space: Sizes) -> Window:
        """The same windows, where there is one along an axis with a stride beyond the data.

        Then no element is looked for in a second one.
        """
        rows = zip(self.stride, self.kernel, space, self.pad, self.counts(space), strict=True)
        stride = tuple(max(s, k, n + p) if count == 1 else s for s, k, n, p, count in rows)
        return Window(self.kernel, stride, self.pad, self.full)


def lowest(dtype: DType) -> float | int:
    """What a window gives that holds nothing, or -inf only: the least finite number, as oneDNN."""
    if dtype.kind != "f":
        return dtype.limits[0]
    return float(ml_dtypes.finfo(dtype.numpy).min)  # type: ignore[no-untyped-call]


def infer_pool(name: str, data: Expr, window: Window) -> tuple[Sizes, DType]:
    """Shape and dtype of a pooling of `data`; raises where the window does not fit."""
    rank = len(window.kernel)
    if data.ndim != rank + 2 or {len(window.stride), len(window.pad)} != {rank}:
        raise ShapeError(complaint(name, "data", f"{rank + 2} axes as {window}", f"{data!r}"))
    counts = window.counts(data.shape[2:])
    if min(counts, default=1) < 1 or any(
        p >= k for p, k in zip(window.pad, window.kernel, strict=True)
    ):
        raise ShapeError(complaint(name, "kernel", f"a window that fits {data!r}", f"{window}"))
    return (*data.shape[:2], *counts), data.dtype


def infer_winner(data: Expr, window: Window) -> tuple[Sizes, DType]:
    """Shape and dtype of winners: bytes where they hold every position in a window.

    Of elements of 64 bits winners have as many, for lanes of one size are faster on processors.
    """
    shape, dtype = infer_pool("max_pool", data, window)
    return shape, dt.uint8 if dtype.size < 8 and prod(window.kernel) <= 1 << 8 else dt.int64


@composite
class MaxPool(Call):
    """The largest element of every window."""

    pictures = True
    data: Expr
    window: Window

    def infer(self) -> tuple[Sizes, DType]:
        return infer_pool("max_pool", self.data, self.window)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.data, MaxPoolGradient(self.data, self, g, self.window)),)

    def reference(self, *operands: Array) -> Array:
        largest = seen(operands[0], self.window, -np.inf).max(axis=tuple(range(-self.rank, 0)))
        return np.asarray(np.maximum(largest, lowest(self.dtype)), operands[0].dtype)

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.window.kernel)

    def fallback(self) -> Expr:
        """The same as an expression that a loop nest computes."""
        w = self.window
        largest = pool(self.data, "max", w.kernel, w.stride, w.pad, w.full)
        return fn.maximum(largest, lowest(self.dtype))


@composite
class MaxPoolGradient(Call):
    """What a max_pool's data receives: each window's gradient goes to its first largest element."""

    pictures = True
    data: Expr
    pooled: Expr
    grad: Expr
    window: Window

    def infer(self) -> tuple[Sizes, DType]:
        return self.data.shape, self.data.dtype

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.grad, Chosen(g, Winner(self.data, self.window), self.window)),)

    def reference(self, *operands: Array) -> Array:
        x, _, g = operands
        w = self.window
        inside = seen(x, w, -np.inf)
        first = inside.reshape(*g.shape, prod(w.kernel)).argmax(axis=-1)
        out = np.zeros_like(x)
        for place in np.ndindex(*g.shape):
            k = np.unravel_index(first[place], w.kernel)
            at = tuple(
                c * s - p + o for c, s, p, o in zip(place[2:], w.stride, w.pad, k, strict=True)
            )
            if all(0 <= a < n for a, n in zip(at, x.shape[2:], strict=True)):
                out[(*place[:2], *at)] += g[place]
        return out

    def fallback(self) -> Expr:
        """The same as expressions: the winner of every window, and what each element won."""
        space = self.data.shape[2:]
        window = self.window.apart(space)
        return Won(self.grad, Winner(self.data, window), window, space)


@composite
class Winner(Call):
    """The position within its window, in row-major order, of the first largest element.

    A call, so that it is computed once a window, not once for each element that asks.
    """

    pictures = True
    data: Expr
    window: Window

    def infer(self) -> tuple[Sizes, DType]:
        return infer_winner(self.data, self.window)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ()

    def reference(self, *operands: Array) -> Array:
        inside = seen(operands[0], self.window, -np.inf)
        flat = inside.reshape(*self.shape, prod(self.window.kernel))
        return np.asarray(flat.argmax(axis=-1), self.dtype.numpy)

    def fallback(self) -> Expr:
        """The same as an expression that a loop nest computes."""
        return Largest(self.data, self.window)


@composite
class Largest(Chainer):
    """A winner as an index rule."""

    data: Expr
    window: Window

    def infer(self) -> tuple[Sizes, DType]:
        return infer_winner(self.data, self.window)

    def at(self, i: Index) -> Term:
        w, space = self.window, self.data.shape[2:]

        def value(k: Index) -> Term:
            at = [x * s + o - p for x, s, o, p in zip(i[2:], w.stride, k, w.pad, strict=True)]
            inside = i.arena.const(True, dt.bool_)
            for x, n in zip(at, space, strict=True):
                inside = inside & (x >= 0) & (x < n)
            return i.guard(inside, i.elem(self.data, (*i[:2], *at)), -float("inf"))

        return i.arena.cast(i.fold(ARGMAX, list(w.kernel), value), self.dtype)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ()


@composite
class Won(Chainer):
    """For every element of the data, the sum of `grad` over the windows that it wins."""

    grad: Expr
    winner: Expr
    window: Window
    space: Sizes

    def infer(self) -> tuple[Sizes, DType]:
        return (*self.grad.shape[:2], *self.space), self.grad.dtype

    def at(self, i: Index) -> Term:
        w = self.window

        def value(back: Index) -> Term:
            inside, place, offset = holder(i, back, w, self.grad.shape[2:])
            within = i.arena.const(0)
            for k, o in zip(w.kernel, offset, strict=True):
                within = within * k + o
            here = (*i[:2], *place)
            winner = i.arena.cast(i.guard(inside, i.elem(self.winner, here), 0), dt.int64)
            won = inside & winner.eq(within)
            return i.guard(won, i.elem(self.grad, here), 0)

        return i.fold(SUM, w.most, value)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.grad, Chosen(g, self.winner, self.window)),)


@composite
class Chosen(Chainer):
    """For every window, the element of `data` at the position that `winner` names."""

    data: Expr
    winner: Expr
    window: Window

    def infer(self) -> tuple[Sizes, DType]:
        return self.winner.shape, self.data.dtype

    def at(self, i: Index) -> Term:
        w = self.window
        within = i.arena.cast(i.elem(self.winner, i), dt.int64)
        at = []
        for x, k, s, p in reversed(list(zip(i[2:], w.kernel, w.stride, w.pad, strict=True))):
            at.append(x * s + within % k - p)
            within = within // k
        return i.elem(self.data, (*i[:2], *reversed(at)))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.data, Won(g, self.winner, self.window, self.data.shape[2:])),)


@composite
class AvgPool(Call):
    """The mean of every window; `counted` says whether padding counts as elements."""

    pictures = True
    data: Expr
    window: Window
    counted: bool

    def infer(self) -> tuple[Sizes, DType]:
        return infer_pool("avg_pool", self.data, self.window)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        space = self.data.shape[2:]
        return ((self.data, AvgPoolGradient(g, self.window, self.counted, space)),)

    def sizes(self) -> Expr:
        """How many elements each window counts, in the shape of the result."""
        return WindowSize(self.shape, self.data.shape[2:], self.window, self.counted, self.dtype)

    def reference(self, *operands: Array) -> Array:
        x = operands[0]
        w, rank = self.window, len(self.window.kernel)
        total = seen(x, w, 0.0).sum(axis=tuple(range(-rank, 0)))
        border = tuple(p if self.counted else 0 for p in w.pad)
        ones = np.ones(
            (1, 1, *(n + 2 * b for n, b in zip(x.shape[2:], border, strict=True))), x.dtype
        )
        pad = tuple(p - b for p, b in zip(w.pad, border, strict=True))
        unit = (1,) * rank
        size = windows(ones, w.kernel, w.stride, pad, unit, self.shape[2:], 0.0)
        return np.asarray(total / np.maximum(size.sum(axis=tuple(range(-rank, 0))), 1))

    def fallback(self) -> Expr:
        """The same as an expression that a loop nest computes."""
        w = self.window
        return pool(self.data, "sum", w.kernel, w.stride, w.pad, w.full) / self.sizes()


@composite
class AvgPoolGradient(Call):
    """What an avg_pool's data of size `space` receives: of each window's gradient its part."""

    pictures = True
    grad: Expr
    window: Window
    counted: bool
    space: Sizes

    def infer(self) -> tuple[Sizes, DType]:
        return (*self.grad.shape[:2], *self.space), self.grad.dtype

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.grad, AvgPool(g, self.window, self.counted)),)

    def reference(self, *operands: Array) -> Array:
        w, (g,) = self.window, operands
        out = np.zeros(self.shape, g.dtype)
        low = tuple(p if self.counted else 0 for p in w.pad)
        for place in np.ndindex(*g.shape[2:]):
            begins = [c * s - p for c, s, p in zip(place, w.stride, w.pad, strict=True)]
            rows = list(zip(begins, w.kernel, self.space, low, strict=True))
            size = prod([max(0, min(b + k, n + p) - max(b, -p)) for b, k, n, p in rows])
            inside: Any = tuple(slice(max(b, 0), max(min(b + k, n), 0)) for b, k, n, _ in rows)
            part = g[(..., *place)] / max(size, 1)
            out[:, :, *inside] += part.reshape(*part.shape, *(1,) * len(place))
        return out

    def fallback(self) -> Expr:
        """The same as an expression that a loop nest computes."""
        w = self.window
        size = WindowSize(self.grad.shape, self.space, w, self.counted, self.dtype)
        return Spread(self.grad / size, w.apart(self.space), self.space)


@composite
class WindowSize(Chainer):
    """How many elements each window of a mean counts."""

    result: Sizes
    space: Sizes
    window: Window
    counted: bool
    of: DType

    def infer(self) -> tuple[Sizes, DType]:
        return self.result, self.of

    def at(self, i: Index) -> Term:
        w, arena = self.window, i.arena
        count = arena.const(1)
        for x, n, k, s, p in zip(i[2:], self.space, w.kernel, w.stride, w.pad, strict=True):
            border = p if self.counted else 0
            start = x * s - p
            stop = arena.op("min", start + k, start.like(n + border))
            count = count * (stop - arena.op("max", start, start.like(-border)))
        count = arena.op("max", count, count.like(1))  # a window beyond the end: the mean is 0
        return arena.cast(count, compute_dtype(self.of))


@composite
class Spread(Chainer):
    """For every element of the data, the sum of `grad` over the windows that hold it."""

    grad: Expr
    window: Window
    space: Sizes

    def infer(self) -> tuple[Sizes, DType]:
        return (*self.grad.shape[:2], *self.space), self.grad.dtype

    def at(self, i: Index) -> Term:
        def value(back: Index) -> Term:
            inside, place, _ = holder(i, back, self.window, self.grad.shape[2:])
            return i.guard(inside, i.elem(self.grad, (*i[:2], *place)), 0)

        return i.fold(SUM, self.window.most, value)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        w = self.window
        return ((self.grad, pool(g, "sum", w.kernel, w.stride, w.pad, w.full)),)


def holder(
    i: Index, back: Index, w: Window, counts: Sequence[Any]
) -> tuple[Term, list[Term], list[Term]]:
    """The `back`-th last window that holds element `i` along each axis: whether there is one, its
    place, and where in it the element lies."""
    inside = i.arena.const(True, dt.bool_)
    place, offset = [], []
    for x, b, k, s, p, n in zip(i[2:], back, w.kernel, w.stride, w.pad, counts, strict=True):
        at = (x + p) // s - b
        within = x + p - at * s
        inside = inside & (at >= 0) & (at < n) & (within < k)
        place.append(at)
        offset.append(within)
    return inside, place, offset


def seen(x: Array, w: Window, fill: float) -> Array:
    """The windows of a pooling in NumPy."""
    unit = (1,) * len(w.kernel)
    return windows(x, w.kernel, w.stride, w.pad, unit, w.counts(x.shape[2:]), fill)


def max_pool(data: Expr, kernel: Sizes, stride: Sizes, pad: Sizes, full: bool = False) -> MaxPool:
    """The largest element of every window of `data` (N, C, space...).

    >>> from gnomon.expr.node import Buffer
    >>> max_pool(Buffer((1, 2, 8, 8)), (2, 2), (2, 2), (0, 0)).shape
    (1, 2, 4, 4)

    Raises:
        ShapeError: the window does not fit the data.
    """
    return MaxPool(data, Window(tuple(kernel), tuple(stride), tuple(pad), full))


def avg_pool(
    data: Expr,
    kernel: Sizes,
    stride: Sizes,
    pad: Sizes,
    full: bool = False,
    count_include_pad: bool = True,
) -> Expr:
    """The mean of every window of `data` (N, C, space...); raises as `max_pool` does.

    Of a window over everything it is a reduction, which is faster than what libraries do. Sums of
    16 bits may be too large for their own dtype, so there it is none.
    """
    window = Window(tuple(kernel), tuple(stride), tuple(pad), full)
    made = AvgPool(data, window, count_include_pad)
    whole = window.kernel == data.shape[2:] and not any(window.pad) and 0 not in data.shape
    if whole and data.dtype.kind == "f" and data.dtype.size >= 4:
        return reduce(data, "sum", range(2, data.ndim), keepdims=True) / prod(window.kernel)
    return made
