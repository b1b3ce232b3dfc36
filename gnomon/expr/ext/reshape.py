"""reshape: the same elements, in row-major order, under another shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.term import Term
from gnomon.shape import prod

Groups = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@composite
class Reshape(Chainer):
    """`src` under the shape `to`; `groups` pairs runs of its axes with runs of the result's."""

    src: Expr
    to: Sizes
    groups: Groups = field(init=False, default=())

    def infer(self) -> tuple[tuple[int, ...], DType]:
        if prod(self.to) != prod(self.src.shape):
            expected = f"{prod(self.src.shape)} elements as {self.src!r}"
            raise ShapeError(complaint("reshape", "shape", expected, self.to))
        object.__setattr__(self, "groups", grouped(self.src.shape, self.to))
        return self.to, self.src.dtype

    def at(self, i: Index) -> Term:
        inner: list[Term] = [i.arena.const(0)] * len(self.src.shape)
        for theirs, ours in self.groups:
            flat = i.arena.const(0)
            for axis in ours:
                flat = flat * self.shape[axis] + i[axis]
            for axis in reversed(theirs[1:]):
                size = self.src.shape[axis]
                inner[axis] = flat % size
                flat = flat // size
            if theirs:
                inner[theirs[0]] = flat
        return i.elem(self.src, inner)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, reshape(g, self.src.shape)),)


def grouped(src: Sequence[int], to: Sequence[int]) -> Groups:
    """The shortest runs of axes of both shapes that hold equally many elements."""
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    a = b = 0
    while a < len(src) or b < len(to):
        first, second = a, b
        left = src[a] if a < len(src) else 1
        right = to[b] if b < len(to) else 1
        a, b = a + (a < len(src)), b + (b < len(to))
        while left != right and (a < len(src) or b < len(to)):
            if (left < right and a < len(src)) or b == len(to):
                left, a = left * src[a], a + 1
            else:
                right, b = right * to[b], b + 1
        groups.append((tuple(range(first, a)), tuple(range(second, b))))
    return tuple(groups)


@explained
def reshape(src: Expr, shape: Sequence[int]) -> Expr:
    """The elements of `src` in row-major order under `shape`, where one -1 stands for the rest.

    >>> reshape(Buffer((2, 3, 4)), (6, -1)).shape
    (6, 4)

    Raises:
        ShapeError: the numbers of elements differ, or -1 cannot be solved.
    """
    to = [whole("reshape", "shape", n) for n in shape]
    if to.count(-1) == 1:
        known, total = prod(n for n in to if n != -1), prod(src.shape)
        if known <= 0 or total % known:
            expected = f"a divisor of {total} elements"
            raise ShapeError(complaint("reshape", "shape", expected, tuple(shape)))
        to[to.index(-1)] = total // known
    if min(to, default=0) < 0:
        raise ShapeError(complaint("reshape", "shape", "sizes, and -1 at most once", tuple(shape)))
    if tuple(to) == src.shape:
        return src
    return Reshape(src.src if isinstance(src, Reshape) else src, tuple(to))


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield reshape(Buffer((2, 3, 4)), (6, 4))
    yield reshape(Buffer((2, 3, 4)), (4, 2, 3))
    yield reshape(Buffer((2, 1, 6)), (2, 3, 1, 2))
    yield reshape(Buffer((1, 1)), ())
    yield reshape(Buffer((0, 3)), (5, 0))
    yield reshape(reshape(Buffer((4, 3)), (12,)), (3, 4))
