"""concat: tensors one after another along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.ext.slice_ import slice_
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.term import Term


@composite
class Concat(Chainer):
    """`parts` one after another along `axis`."""

    parts: tuple[Expr, ...]
    axis: int

    def infer(self) -> tuple[tuple[int, ...], DType]:
        first = self.parts[0]
        axis = normal_axis("concat", self.axis, first.ndim)
        for k, part in enumerate(self.parts):
            if part.dtype is not first.dtype:
                expected = f"dtype {first.dtype.name} as {first!r}"
                raise DTypeError(complaint("concat", f"part {k}", expected, f"{part!r}"))
            rest = part.shape[:axis] + part.shape[axis + 1 :]
            if part.ndim != first.ndim or rest != first.shape[:axis] + first.shape[axis + 1 :]:
                expected = f"the shape of {first!r} but for axis {axis}"
                raise ShapeError(complaint("concat", f"part {k}", expected, f"{part!r}"))
        total = sum(part.shape[axis] for part in self.parts)
        return (*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype

    def at(self, i: Index) -> Term:
        axis = self.axis
        starts = [i.arena.const(0)]
        for part in self.parts[:-1]:
            starts.append(starts[-1] + part.shape[axis])
        value = i.elem(self.parts[-1], i.put(axis, i[axis] - starts[-1]))
        for k in reversed(range(len(self.parts) - 1)):
            here = i.elem(self.parts[k], i.put(axis, i[axis] - starts[k]))
            value = i.guard(i[axis] < starts[k + 1], here, value)
        return value

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        axis = self.axis
        pairs, start = [], 0
        for part in self.parts:
            whole: list[int | None] = [None] * axis
            stop = start + part.shape[axis]
            pairs.append((part, slice_(g, [*whole, start], [*whole, stop])))
            start = stop
        return tuple(pairs)


@explained
def concat(parts: Sequence[Expr], axis: int) -> Expr:
    """`parts` one after another along `axis`.

    >>> concat([Buffer((2, 3)), Buffer((4, 3))], 0).shape
    (6, 3)

    Raises:
        ShapeError: no parts, or sizes that differ along another axis.
        DTypeError: dtypes that differ.
    """
    if not parts:
        raise ShapeError(complaint("concat", "parts", "at least one", len(parts)))
    axis = normal_axis("concat", axis, parts[0].ndim)
    return parts[0] if len(parts) == 1 else Concat(tuple(parts), axis)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield concat([Buffer((2, 3)), Buffer((4, 3)), Buffer((1, 3))], 0)
    yield concat([Buffer((2, 3, 1)), Buffer((2, 0, 1)), Buffer((2, 2, 1))], -2)
