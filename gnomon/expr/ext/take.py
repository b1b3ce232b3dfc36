"""take, take_grad, pick, one_hot: elements by the value of an index.

An index outside is taken as the nearest one inside: nothing is ever read or written elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import fn
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.composite import Chainer, Scatter, Size, composite
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import SUM, check_numbers
from gnomon.expr.term import Term, compute_dtype


@composite
class Take(Chainer):
    """Row `index[i]` of `src` at each i."""

    src: Expr
    index: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_index("take", self.index)
        if not self.src.shape or (self.src.shape[0] == 0 and 0 not in self.index.shape):
            raise ShapeError(complaint("take", "src", "rows to take", f"{self.src!r}"))
        return (*self.index.shape, *self.src.shape[1:]), self.src.dtype

    def at(self, i: Index) -> Term:
        m = self.index.ndim
        row = clipped(i, i.elem(self.index, i[:m]), self.src.shape[0])
        return i.elem(self.src, (row, *i[m:]))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, TakeGrad(self.index, g, self.src.shape[0])),)


@composite
class TakeGrad(Scatter):
    """Row r is the sum of `grad` wherever `index` is r; `once`: no two of its numbers are equal."""

    index: Expr
    grad: Expr
    rows: Size
    once: bool = False

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_index("take_grad", self.index)
        check_numbers("take_grad", "grad", self.grad)
        m = self.index.ndim
        if self.grad.shape[:m] != self.index.shape:
            expected = f"a shape that begins as {self.index!r}"
            raise ShapeError(complaint("take_grad", "grad", expected, f"{self.grad!r}"))
        return (self.rows, *self.grad.shape[m:]), self.grad.dtype

    def at(self, i: Index) -> Term:
        def body(k: Index) -> Term:
            row = clipped(i, i.elem(self.index, k), self.rows)
            return i.guard(row.eq(i[0]), i.elem(self.grad, (*k, *i[1:])), 0)

        return i.fold(SUM, list(self.index.shape), body)

    @property
    def source(self) -> tuple[Expr, int]:
        return self.grad, 0 if self.once else self.index.ndim

    def onto(self, i: Index) -> tuple[Term, ...]:
        m = self.index.ndim
        return clipped(i, i.elem(self.index, i[:m]), self.rows), *i[m:]

    def over(self, source: Expr) -> TakeGrad:
        return TakeGrad(self.index, source, self.rows, self.once)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.grad, Take(g, self.index)),)


@composite
class Pick(Chainer):
    """The element of every row of `src` that `index` names."""

    src: Expr
    index: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_index("pick", self.index)
        if not self.src.shape or self.index.shape != self.src.shape[:-1]:
            expected = f"the shape of {self.src!r} without its last axis"
            raise ShapeError(complaint("pick", "index", expected, f"{self.index!r}"))
        if self.src.shape[-1] == 0 and 0 not in self.index.shape:
            raise ShapeError(complaint("pick", "src", "rows that are not empty", f"{self.src!r}"))
        return self.index.shape, self.src.dtype

    def at(self, i: Index) -> Term:
        column = clipped(i, i.elem(self.index, i), self.src.shape[-1])
        return i.elem(self.src, (*i, column))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, Place(self.index, g, self.src.shape[-1])),)


@composite
class Place(Chainer):
    """Rows of `width` that are 0 but for one element, at `index`, of `value`."""

    index: Expr
    value: Expr
    width: Size

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (*self.index.shape, self.width), self.value.dtype

    def at(self, i: Index) -> Term:
        column = clipped(i, i.elem(self.index, i[:-1]), self.width)
        return i.select(here(i, column, self.width), i.elem(self.value, i[:-1]), 0)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.value, Pick(g, self.index)),)


@composite
class OneHot(Chainer):
    """Rows of `width` that are 0 but for a 1 at `index`; all 0 where it is outside."""

    index: Expr
    width: Size
    of: DType

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_index("one_hot", self.index)
        return (*self.index.shape, self.width), self.of

    def at(self, i: Index) -> Term:
        column = i.arena.cast(i.elem(self.index, i[:-1]), dt.int64)
        column = i.arena.op("min", column, column.like(self.width))
        column = i.arena.op("max", column, i.arena.const(-1))
        return i.arena.cast(here(i, column, self.width), compute_dtype(self.of))


def check_index(where: str, index: Expr) -> None:
    """A DTypeError unless `index` holds integers."""
    if index.dtype.kind not in "iu":
        expected = "integers: cast it first"
        raise DTypeError(complaint(where, "index", expected, f"{index!r}"))


def here(i: Index, column: Term, width: Size) -> Term:
    """Whether the last index is `column`, which is a number from -1 to `width`."""
    last = i[-1]
    if isinstance(width, int) and width <= dt.int32.limits[1]:  # half as wide, twice as fast
        column, last = i.arena.cast(column, dt.int32), i.arena.cast(last, dt.int32)
    return column.eq(last)


def clipped(i: Index, value: Term, size: int) -> Term:
    """`value` as an index from 0 to `size` - 1."""
    value = i.arena.cast(value, dt.int64)
    last = value.like(size) - 1
    return i.arena.op("max", i.arena.op("min", value, last), i.arena.const(0))


@explained
def take(src: Expr, index: Expr) -> Expr:
    """The rows of `src` that the integers of `index` name.

    >>> take(Buffer((9, 4)), Buffer((2, 3), dt.int64)).shape
    (2, 3, 4)

    Raises:
        ShapeError: `src` has no rows.
        DTypeError: `index` holds no integers.
    """
    return Take(src, index)


@explained
def take_grad(index: Expr, grad: Expr, rows: int, once: bool = False) -> Expr:
    """What `take` sends back: `rows` rows, each the sum of `grad` where `index` names it.

    `once` promises that `index` names each row once at most: then nothing has to be ordered.

    >>> take_grad(Buffer((2, 3), dt.int64), Buffer((2, 3, 4)), 9).shape
    (9, 4)
    """
    return TakeGrad(index, grad, whole("take_grad", "rows", rows, 0), once)


@explained
def pick(src: Expr, index: Expr) -> Expr:
    """The element of each row (along the last axis) of `src` that the integers of `index` name.

    >>> pick(Buffer((5, 3)), Buffer((5,), dt.int32)).shape
    (5,)

    Raises:
        ShapeError: `index` has not one number a row.
        DTypeError: `index` holds no integers.
    """
    return Pick(src, index)


@explained
def one_hot(index: Expr, width: int, dtype: DType = dt.float32) -> Expr:
    """Rows of `width`: 1 at the place that the integers of `index` name, else 0.

    >>> one_hot(Buffer((5,), dt.int32), 10).shape
    (5, 10)

    Raises:
        DTypeError: `index` holds no integers.
    """
    return OneHot(index, whole("one_hot", "width", width, 0), dt.of(dtype))


@explained
def mat_fill_row_element(src: Expr, value: Expr, index: Expr) -> Expr:
    """`src` with the element of each row that `index` names replaced by that of `value`.

    >>> rows, index = Buffer((5, 3)), Buffer((5,), dt.int64)
    >>> mat_fill_row_element(rows, Buffer((5,)), index).shape
    (5, 3)
    """
    if not src.shape:
        raise ShapeError(complaint("mat_fill_row_element", "src", "rows", f"{src!r}"))
    hit = one_hot(index, src.shape[-1], src.dtype)
    wide = broadcast_to(reshape(value, (*value.shape, 1)), src.shape)
    return fn.where(hit, wide, src)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield take(Buffer((4, 3)), Buffer((2, 5), dt.int64))
    yield take(Buffer((4,)), Buffer((), dt.int32))
    yield take_grad(Buffer((6,), dt.int64), Buffer((6, 2)), 4)
    yield pick(Buffer((5, 3)), Buffer((5,), dt.int32))
    yield Place(Buffer((5,), dt.int64), Buffer((5,)), 3)
    yield one_hot(Buffer((2, 3), dt.int64), 4)
    yield mat_fill_row_element(Buffer((5, 3)), Buffer((5,)), Buffer((5,), dt.int64))
