"""transpose, transpose_indices, swapaxis: the axes in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes, normal_axis
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.index import Index
from gnomon.expr.node import TURN, Buffer, Expr
from gnomon.expr.term import Term
from gnomon.expr.view import view_of


@composite
class Transpose(Chainer):
    """Axis k of the result is axis `axes[k]` of `src`."""

    src: Expr
    axes: tuple[int, ...]

    def infer(self) -> tuple[tuple[int, ...], DType]:
        whole = isinstance(self.axes, tuple) and all(isinstance(a, int) for a in self.axes)
        if not whole or sorted(self.axes) != list(range(self.src.ndim)):
            expected = f"a tuple of every axis of {self.src!r} once"
            raise ShapeError(complaint("transpose", "axes", expected, self.axes))
        return tuple(self.src.shape[a] for a in self.axes), self.src.dtype

    @property
    def inverse(self) -> tuple[int, ...]:
        """The axes that undo this."""
        return tuple(self.axes.index(a) for a in range(len(self.axes)))

    def at(self, i: Index) -> Term:
        return i.elem(self.src, [i[k] for k in self.inverse])

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, transpose(g, self.inverse)),)

    def view(self, src: Buffer) -> Buffer | None:
        strides = [src.strides[a] for a in self.axes]
        return view_of(src, self.shape, strides)


@explained
def transpose(src: Expr, axes: Sequence[int] | None = None) -> Expr:
    """`src` with its axes reversed, or in the order `axes`.

    >>> transpose(Buffer((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)

    Raises:
        ShapeError: `axes` does not name every axis once.
    """
    if axes is None:
        axes = range(src.ndim)[::-1]
    order = tuple(normal_axis("transpose", a, src.ndim) for a in axes)
    if isinstance(src, Transpose) and len(order) == src.ndim:  # e.T.T is e
        return transpose(src.src, [src.axes[a] for a in order])
    return src if order == tuple(range(src.ndim)) else Transpose(src, order)


@composite
class TransposeIndices(Chainer):
    """For positions in row-major order of `sizes`, those in the order of its transpose."""

    src: Expr
    sizes: Sizes
    axes: tuple[int, ...]

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.src.shape, self.src.dtype

    def at(self, i: Index) -> Term:
        rest, place = i.cast(i.elem(self.src, i), dt.int64), i.arena.const(0)
        found: dict[int, Term] = {}
        for axis in reversed(range(len(self.sizes))):
            found[axis] = rest % self.sizes[axis]
            rest = rest // self.sizes[axis]
        for axis in self.axes:
            place = place * self.sizes[axis] + found[axis]
        return i.cast(place, self.dtype)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ()


@explained
def transpose_indices(indices: Expr, shape: Sequence[int], axes: Sequence[int]) -> Expr:
    """Flat positions in a tensor of `shape` as positions in `transpose` of it by `axes`.

    >>> transpose_indices(Buffer((5,), dt.int64), (2, 3, 4), (2, 0, 1)).shape
    (5,)

    Raises:
        ShapeError: `axes` does not name every axis once, or a tensor of `shape` has no elements.
        DTypeError: `indices` are truth values.
    """
    sizes = checked_sizes("transpose_indices", shape)
    order = tuple(normal_axis("transpose_indices", a, len(sizes)) for a in axes)
    if sorted(order) != list(range(len(sizes))):
        expected = f"every axis of {sizes} once"
        raise ShapeError(complaint("transpose_indices", "axes", expected, order))
    if 0 in sizes:
        raise ShapeError(complaint("transpose_indices", "shape", "elements", sizes))
    if indices.dtype.kind == "b":
        raise DTypeError(complaint("transpose_indices", "indices", "numbers", f"{indices!r}"))
    return TransposeIndices(indices, sizes, order)


@explained
def turned(src: Expr) -> Expr:
    """`src.T`: the axes reversed; of a vector, a node of its own that `dot` takes for a column."""
    if src.ndim == 1 and not isinstance(src, Transpose):
        return Transpose(src, (0,))
    return transpose(src)


TURN.setdefault("T", turned)  # the first wins where a tool imports this file again


@explained
def swapaxis(src: Expr, a: int, b: int) -> Expr:
    """`src` with axes `a` and `b` exchanged.

    >>> swapaxis(Buffer((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    a, b = (normal_axis("swapaxis", x, src.ndim) for x in (a, b))
    order = list(range(src.ndim))
    order[a], order[b] = b, a
    return transpose(src, order)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield transpose(Buffer((2, 3)))
    yield transpose(Buffer((2, 3, 4)), (2, 0, 1))
    yield transpose(transpose(Buffer((2, 3, 4)), (1, 2, 0)), (0, 2, 1))
    yield swapaxis(Buffer((2, 3, 4, 1)), 1, -1)
    yield transpose_indices(Buffer((4,), dt.int64), (2, 3, 4), (2, 0, 1))
