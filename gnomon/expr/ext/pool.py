"""pool, unpool: what a reducer makes of every window along the last axes, and its gradient.

The gradient of an extreme goes to every tie, as in mshadow; `call.max_pool` gives it to the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from gnomon import dtype as dt
from gnomon.base import DTypeError, GnomonError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import one_each
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import MAXIMUM, MINIMUM, SUM, Reducer, check_numbers
from gnomon.expr.term import Term
from gnomon.expr.window import places
from gnomon.ground.record import record

Pair = tuple[int, ...]
POOLERS = {"sum": SUM, "avg": SUM, "max": MAXIMUM, "min": MINIMUM}


@record()
class Windows:
    """Where the windows lie along the last axes; with `full` the last may hang over the end."""

    kernel: Pair
    stride: Pair
    pad: Pair
    full: bool

    def counts(self, space: Sequence[int]) -> Pair:
        """How many windows there are along each axis."""
        return places(tuple(space), self.kernel, self.stride, self.pad, self.full)


@composite
class Pool(Chainer):
    """`reducer` over every window of `src`."""

    src: Expr
    reducer: Reducer
    windows: Windows

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_numbers("pool", "src", self.src, self.reducer)
        rank, windows = len(self.windows.kernel), self.windows
        front = self.src.ndim - rank
        if front < 0:
            raise ShapeError(complaint("pool", "src", f"at least {rank} axes", f"{self.src!r}"))
        counts = windows.counts(self.src.shape[front:])
        hollow = any(p >= k for p, k in zip(windows.pad, windows.kernel, strict=True))
        if min(counts) < 1 or (hollow and self.reducer != SUM):  # nothing has a sum, no extreme
            expected = f"windows that fit {self.src!r}, pad below kernel"
            raise ShapeError(complaint("pool", "kernel", expected, windows))
        return (*self.src.shape[:front], *counts), self.src.dtype

    def at(self, i: Index) -> Term:
        w = self.windows
        front = len(i) - len(w.kernel)

        def body(k: Index) -> Term:
            inside = i.arena.const(True, dt.bool_)
            place = list(i[:front])
            for a, offset in enumerate(k):
                at = i[front + a] * w.stride[a] + offset - w.pad[a]
                if w.pad[a]:
                    inside = inside & (at >= 0)
                if w.pad[a] or w.full:
                    inside = inside & (at < self.src.shape[front + a])
                place.append(at)
            value = i.elem(self.src, place)
            return i.guard(inside, value, self.reducer.start(value.dtype)[0])

        return i.fold(self.reducer, list(w.kernel), body)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        check_gradient("pool", self.reducer)
        pooled = None if self.reducer == SUM else self
        src = None if pooled is None else self.src
        front = self.src.ndim - len(self.windows.kernel)
        return ((self.src, Unpool(src, pooled, g, self.windows, self.src.shape[front:])),)


@composite
class Unpool(Chainer):
    """For every element the sum of `grad` over its windows, or those whose extreme it is."""

    src: Expr | None
    pooled: Expr | None
    grad: Expr
    windows: Windows
    space: Sizes
    rereads: ClassVar[bool] = True  # the gradient of a window once, not for each of its elements

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_numbers("unpool", "grad", self.grad)
        front = self.grad.ndim - len(self.windows.kernel)
        return (*self.grad.shape[:front], *self.space), self.grad.dtype

    def at(self, i: Index) -> Term:
        w = self.windows
        front = len(i) - len(w.kernel)
        counts = self.grad.shape[front:]
        # at most this many windows hold an element, along each axis
        most = [-(-k // s) for k, s in zip(w.kernel, w.stride, strict=True)]
        several = [a for a, m in enumerate(most) if m > 1]

        def body(back: Index) -> Term:
            inside = i.arena.const(True, dt.bool_)
            window = list(i[:front])
            for a, (k, s) in enumerate(zip(w.kernel, w.stride, strict=True)):
                position = i[front + a] + w.pad[a]
                at = position // s
                if a in several:
                    at = at - back[several.index(a)]
                    inside = inside & (at >= 0)
                if k % s:
                    inside = inside & (position - at * s < k)
                inside = inside & (at < counts[a])
                window.append(at)
            value = i.elem(self.grad, window)
            if self.src is not None and self.pooled is not None:
                extreme = i.elem(self.src, i).eq(i.elem(self.pooled, window))
                value = i.select(extreme, value, 0)
            return i.guard(inside, value, 0)

        return i.fold(SUM, [most[a] for a in several], body)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        if self.src is not None:
            raise GnomonError("unpool: the gradient of an extreme's gradient is not defined")
        return ((self.grad, Pool(g, SUM, self.windows)),)


def _windows(where: str, kernel: Pair, stride: Pair, pad: Pair | None, full: bool) -> Windows:
    rank = len(kernel)
    pad = (0,) * rank if pad is None else pad
    stride, pad = one_each(where, "stride", stride, rank), one_each(where, "pad", pad, rank)
    if min(*kernel, *stride) < 1 or min(pad) < 0:
        expected = "kernel and stride of at least 1, pad of at least 0"
        raise ShapeError(complaint(where, "kernel", expected, (kernel, stride, pad)))
    return Windows(one_each(where, "kernel", kernel, rank), stride, pad, full)


def check_gradient(where: str, reducer: Reducer) -> None:
    """A GnomonError where the gradient of windows of `reducer` is not known."""
    if reducer not in (SUM, MAXIMUM, MINIMUM):
        raise GnomonError(f"{where}: the reducer {reducer.name!r} has no derivative")


def _reducer(where: str, name: str | Reducer) -> Reducer:
    if isinstance(name, Reducer):
        if name.arity != 1:
            raise GnomonError(complaint(where, "reducer", "one of a single value", name.name))
        return name
    if name not in POOLERS:
        raise GnomonError(complaint(where, "reducer", f"one of {', '.join(POOLERS)}", repr(name)))
    return POOLERS[name]


@explained
def pool(
    src: Expr,
    reducer: str | Reducer,
    kernel: Pair,
    stride: Pair,
    pad: Pair | None = None,
    full: bool = False,
) -> Expr:
    """What 'sum', 'avg', 'max', 'min' or a `Reducer` makes of windows along the last axes of `src`.

    Padding counts as 0 in a sum, never as an extreme; 'avg' divides by the size of the kernel.

    >>> pool(Buffer((1, 3, 8, 8)), "max", (2, 2), (2, 2)).shape
    (1, 3, 4, 4)

    Raises:
        ShapeError: the windows do not fit.
        GnomonError: no such reducer.
        DTypeError: the mean of integers.
    """
    found = _reducer("pool", reducer)
    pooled = Pool(src, found, _windows("pool", kernel, stride, pad, full))
    return pooled if reducer != "avg" else pooled * _share("pool", src, kernel)


@explained
def unpool(
    reducer: str | Reducer,
    src: Expr,
    pooled: Expr,
    grad: Expr,
    kernel: Pair,
    stride: Pair,
    pad: Pair | None = None,
    full: bool = False,
) -> Expr:
    """What the `src` of `pool` receives where its result receives `grad`: every tie all of it.

    >>> x, y = Buffer((3, 8, 8)), Buffer((3, 4, 4))
    >>> unpool("max", x, y, Buffer((3, 4, 4)), (2, 2), (2, 2)).shape
    (3, 8, 8)

    Raises:
        ShapeError: `pooled` or `grad` is not what the windows of `src` give.
        GnomonError: no such reducer.
    """
    node = Pool(src, _reducer("unpool", reducer), _windows("unpool", kernel, stride, pad, full))
    for name, operand in (("pooled", pooled), ("grad", grad)):
        if operand.shape != node.shape:
            raise ShapeError(complaint("unpool", name, f"shape {node.shape}", f"{operand!r}"))
    check_gradient("unpool", node.reducer)
    space = src.shape[src.ndim - len(kernel) :]
    if node.reducer == SUM:
        spread = Unpool(None, None, grad, node.windows, space)
        return spread if reducer != "avg" else spread * _share("unpool", src, kernel)
    return Unpool(src, pooled, grad, node.windows, space)


def _share(where: str, src: Expr, kernel: Pair) -> float:
    if src.dtype.kind != "f":
        raise DTypeError(complaint(where, "src", "floats for a mean: cast it first", f"{src!r}"))
    size = 1
    for k in kernel:
        size *= k
    return 1.0 / size


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield pool(Buffer((2, 6, 6)), "max", (2, 2), (2, 2))
    yield pool(Buffer((1, 2, 7, 5)), "max", (3, 2), (2, 1), (1, 1))
    yield pool(Buffer((2, 7, 6)), "min", (3, 3), (2, 2), (0, 0), full=True)
    yield pool(Buffer((2, 7, 6)), "sum", (3, 3), (2, 2), (1, 1), full=True)
    yield pool(Buffer((2, 9)), "avg", (4,), (3,))
    yield unpool("sum", Buffer((4, 4)), Buffer((2, 2)), Buffer((2, 2)), (2, 2), (2, 2))
