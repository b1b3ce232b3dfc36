"""What may stand left of an assignment: tensors, and slices, mirrors and rows of joined tensors.

A slice or a mirror image of a tensor is a tensor over the same memory. Tensors one after another
are a `Joined`; a slice or a mirror image of one is again a Joined, of parts. Assigning to it stores
the pieces of the value as one group: every piece is computed before anything is stored, so a value
may read what any of the parts holds.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any, Self

from gnomon.base import ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis
from gnomon.expr.composite import composite
from gnomon.expr.ext import concat as join
from gnomon.expr.ext import flip as mirrored
from gnomon.expr.ext import slice_
from gnomon.expr.ext.concat import Concat
from gnomon.expr.ext.flip import Flip
from gnomon.expr.ext.slice_ import Bounds, Slice
from gnomon.expr.node import Buffer, Expr, Operand
from gnomon.expr.pattern import NONE, Pattern, holds, pattern_now, pattern_of, steady
from gnomon.shadow.assign import assign_all, divto, minusto, multo, plusto, saveto, storing
from gnomon.shadow.tensor import Tensor, everything

KEPT = 1024
#: axis and pattern of what was joined, by the patterns of the parts and the axis as given
_known: dict[tuple[Pattern, Pattern, int], tuple[int, Pattern]] = {}


@composite
class Joined(Concat):
    """Tensors one after another along an axis, as one thing to assign to.

    >>> import numpy as np
    >>> a, b = (Tensor(np.zeros(2, np.float32)) for _ in range(2))
    >>> both = concat(a, b)
    >>> both[:] = Tensor(np.arange(4, dtype=np.float32))
    >>> both += 10.0
    >>> a.numpy(), b.numpy()
    (array([10., 11.], dtype=float32), array([12., 13.], dtype=float32))
    """

    @classmethod
    def known(cls, parts: tuple[Expr, ...], axis: int, pattern: Pattern) -> Self:
        """What joining parts of patterns that were joined before gives; nothing is checked."""
        made = object.__new__(cls)
        for name, value in (("parts", parts), ("axis", axis), ("pattern", pattern)):
            object.__setattr__(made, name, value)
        for name in ("shape", "dtype", "exp_type"):
            object.__setattr__(made, name, getattr(pattern, name))
        return made

    def targets(self, value: Expr) -> list[tuple[Buffer, Expr]]:
        """The tensors, with the piece of `value` that each takes."""
        if not value.shape:
            pieces = [value] * len(self.parts)
        else:
            pieces = [piece for _, piece in self.adjoint(value)]
        found: list[tuple[Buffer, Expr]] = []
        for part, piece in zip(self.parts, pieces, strict=True):
            if isinstance(part, Joined):
                found.extend(part.targets(piece))
            elif isinstance(part, Buffer):
                found.append((part, piece))
        return found

    def assign(self, value: Operand, saver: Any = saveto) -> Self:
        """Store `value` in the parts; raises as assigning to a tensor does, all untouched."""
        assign_all(self, saver, value)
        return self

    def __setitem__(self, key: builtins.slice, value: Operand) -> None:
        if not (isinstance(key, builtins.slice) and everything(key)):
            raise ShapeError(complaint("assignment", "key", "[:] (see slice)", key))
        if value is not self:  # what `j[:] += e` stores again
            self.assign(value)

    def __getitem__(self, key: builtins.slice) -> Self:
        if not (isinstance(key, builtins.slice) and everything(key)):
            raise ShapeError(complaint("concat", "key", "[:] (see slice)", key))
        return self

    def __iadd__(self, value: Operand) -> Self:
        return self.assign(value, plusto)

    def __isub__(self, value: Operand) -> Self:
        return self.assign(value, minusto)

    def __imul__(self, value: Operand) -> Self:
        return self.assign(value, multo)

    def __itruediv__(self, value: Operand) -> Self:
        return self.assign(value, divto)

    __iand__, __ior__ = storing(operator.and_), storing(operator.or_)
    __ixor__ = storing(operator.xor)
    __ilshift__, __irshift__ = storing(operator.lshift), storing(operator.rshift)

    def __ipow__(self, value: Operand) -> Self:
        # without this, Python would make the name an expression and store nothing
        raise TypeError(complaint("assignment", "operator", "w[:] = w ** 2", "w **= 2"))


@explained
def concat(a: Expr, b: Expr, dim: int = 0) -> Expr:
    """`b` behind `a` along axis `dim`; of tensors, something to assign to as well.

    >>> concat(Buffer((2, 3)), Buffer((4, 3))).shape
    (6, 3)

    Raises:
        ShapeError: sizes differ along another axis, or there is no such axis.
        DTypeError: the dtypes differ.
    """
    if isinstance(a, Tensor | Joined) and isinstance(b, Tensor | Joined):
        return joined(a, b, dim)
    return join([a, b], dim)


def joined(a: Tensor | Joined, b: Tensor | Joined, dim: int) -> Joined:
    """`concat` of what may be assigned to; what was joined before is known by its patterns."""
    axis = normal_axis("concat", dim, a.ndim)
    key = (pattern_now(a), pattern_now(b), axis)
    known = _known.get(key)
    if known is not None and holds(known[1]):
        return Joined.known((a, b), *known)
    made = Joined((a, b), axis)
    pattern = pattern_of(made)
    if NONE not in (*key[:2], pattern) and pattern.epoch == key[0].epoch:
        if len(_known) >= KEPT:
            _known.clear()
        _known[key] = axis, pattern
    return made


@explained
def slice(e: Expr, begin: int, end: int, dim: int = 0) -> Expr:
    """The elements `begin` to before `end` along axis `dim`; a tensor's are a tensor.

    >>> slice(Buffer((5, 3)), 1, 4).shape
    (3, 3)

    Raises:
        ShapeError: there is no such axis, or they do not lie inside.
    """
    dim = normal_axis("slice", dim, e.ndim)
    if not 0 <= begin <= end <= e.shape[dim]:
        expected = f"0 <= begin <= end <= {e.shape[dim]}, the size of axis {dim}"
        raise ShapeError(complaint("slice", "begin, end", expected, (begin, end)))
    front: list[int | None] = [None] * dim
    return part(e, [*front, begin], [*front, end], None)


@explained
def slice_ex(e: Expr, begin: Bounds, end: Bounds, step: Bounds | None = None) -> Expr:
    """`e[begin:end:step]`, a number or None for each axis; a tensor's is a tensor.

    >>> slice_ex(Buffer((5, 6)), (1, 2), (4, 6)).shape
    (3, 4)

    Raises:
        ShapeError: more numbers than axes, or a step of 0.
    """
    return part(e, begin, end, step)


@explained
def flip(e: Expr, dim: int) -> Expr:
    """`e` mirrored along axis `dim`; a tensor's mirror image is a tensor.

    >>> flip(Buffer((5, 3)), 1).shape
    (5, 3)

    Raises:
        ShapeError: there is no such axis.
    """
    dim = normal_axis("flip", dim, e.ndim)
    if isinstance(e, Joined):
        parts = tuple(flip(p, dim) for p in e.parts)
        return Joined(parts[::-1] if dim == e.axis else parts, e.axis)
    return steady(lambda: assignable(e, mirrored(e, dim)))


def part(e: Expr, begin: Bounds, end: Bounds, step: Bounds | None) -> Expr:
    """A slice, kept assignable where `e` is."""
    return steady(lambda: _part(e, begin, end, step))


def _part(e: Expr, begin: Bounds, end: Bounds, step: Bounds | None) -> Expr:
    made = slice_(e, begin, end, step)
    if not isinstance(e, Joined) or not isinstance(made, Slice):
        return assignable(e, made)
    return _across(e, made)


def _across(e: Joined, made: Slice) -> Expr:
    """The slice `made` of joined tensors as the slices of them, joined."""
    axis, offset, parts = e.axis, 0, []
    first, count, step = made.begin[axis], made.to[axis], made.step[axis]
    for p in e.parts:
        size = p.shape[axis]
        here = within(range(first, first + count * step, step), offset, offset + size)
        begins: list[int | None] = list(made.begin)
        stops = _stops(made)
        begins[axis], stops[axis] = 0, 0 if step > 0 else size
        if here:
            begins[axis] = here[0] - offset
            stops[axis] = stop_after(here[-1] - offset, step)
        parts.append(part(p, begins, stops, made.step))
        offset += size
    return Joined(tuple(parts if step > 0 else parts[::-1]), axis)


def within(places: range, low: int, high: int) -> range:
    """Those of `places` from `low` to before `high`."""
    if places.step < 0:
        return within(places[::-1], low, high)[::-1]
    skip = max(0, -((places.start - low) // places.step))
    return places[
        skip : skip + max(0, -((places.start + skip * places.step - high) // places.step))
    ]


def _stops(made: Slice) -> list[int | None]:
    rows = zip(made.begin, made.to, made.step, strict=True)
    return [stop_after(b + (n - 1) * s, s) if n else b for b, n, s in rows]


def stop_after(last: int, step: int) -> int | None:
    """The bound of a slice whose last element is `last`."""
    if step > 0:
        return last + 1
    return last - 1 if last else None


def assignable(e: Expr, made: Expr) -> Expr:
    """`made`, a slice or mirror image of `e`: of a tensor as a tensor over its memory."""
    if isinstance(e, Tensor) and isinstance(made, Slice | Flip):
        view = made.view(e)
        return made if view is None else Tensor.of(view)
    return made


__all__: Sequence[str] = ("Joined", "concat", "flip", "slice", "slice_ex")
