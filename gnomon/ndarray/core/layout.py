"""Layout: how an array's elements lie in its memory; one object for each that is in use.

Layouts are looked up by what they say, so that `is` compares them and an operator's recipe is found
by their identities.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Final

from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.ground.record import Frozen, put
from gnomon.native.words import whole
from gnomon.shape import is_row_major, prod, row_major

Shape = tuple[int, ...]


@whole
class Layout(Frozen):
    """Shape, strides in elements (None: dense, the last axis fastest) and dtype."""

    __slots__ = ("__weakref__", "dtype", "nbytes", "shape", "size", "strides")

    nbytes: Final[int]

    def __init__(self, shape: Shape, strides: Shape | None, dtype: DType) -> None:
        put(self, "shape", shape)
        put(self, "strides", strides)
        put(self, "dtype", dtype)
        put(self, "size", prod(shape))
        put(self, "nbytes", self.size * dtype.size)

    def __repr__(self) -> str:
        return f"Layout({self.shape}, {self.strides}, {self.dtype.name})"

    def steps(self) -> Shape:
        """The strides, in elements, spelled out."""
        return row_major(self.shape) if self.strides is None else self.strides

    def reach(self) -> tuple[int, int]:
        """Bytes from the first element to the lowest and to the end of the highest one."""
        if self.strides is None or not self.size:
            return 0, self.nbytes
        ends = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
        return low * self.dtype.size, (high + 1) * self.dtype.size


_known: weakref.WeakValueDictionary[tuple[Shape, Shape | None, DType], Layout] = (
    weakref.WeakValueDictionary()
)


def dense(shape: Shape, dtype: DType) -> Layout:
    """The layout without gaps.

    >>> from gnomon.dtype import float32
    >>> dense((2, 3), float32) is strided((2, 3), (3, 1), float32)
    True

    Raises:
        ShapeError: a size is negative.
    """
    key = (shape, None, dtype)
    found = _known.get(key)
    if found is None:
        if min(shape, default=0) < 0:
            raise ShapeError(complaint("NDArray", "shape", "no size below 0", shape))
        found = _known.setdefault(key, Layout(*key))
    return found


def strided(shape: Shape, strides: Sequence[int], dtype: DType) -> Layout:
    """The layout with these strides; the dense one where they are nothing else."""
    steps = tuple(strides)
    if is_row_major(shape, steps) or 0 in shape:
        return dense(shape, dtype)
    key = (shape, steps, dtype)
    found = _known.get(key)
    return _known.setdefault(key, Layout(*key)) if found is None else found


def reshaped(layout: Layout, shape: Shape) -> Layout | None:
    """The layout of the same elements in the same memory under another shape, if there is one.

    >>> from gnomon.dtype import float32
    >>> rows = strided((2, 3), (8, 1), float32)
    >>> reshaped(rows, (2, 1, 3)), reshaped(rows, (6,))
    (Layout((2, 1, 3), (8, 8, 1), float32), None)
    """
    if layout.strides is None:
        return dense(shape, layout.dtype)
    steps = _steps_under(shape, layout)
    return None if steps is None else strided(shape, steps, layout.dtype)


def _steps_under(shape: Shape, layout: Layout) -> list[int] | None:
    """Strides for `shape` over the memory of `layout`: joined axes must follow each other."""
    old = [(n, s) for n, s in zip(layout.shape, layout.steps(), strict=True) if n != 1]
    steps = [0] * len(shape)
    axis = len(shape) - 1
    while old:
        size, step = old.pop()
        while old and old[-1][1] == step * size and _splits(shape, axis, size):
            size *= old.pop()[0]
        while size > 1:
            if axis < 0 or size % shape[axis]:
                return None
            steps[axis] = step
            step, size, axis = step * shape[axis], size // shape[axis], axis - 1
    later = 1
    for k in range(len(shape) - 1, -1, -1):
        steps[k] = steps[k] or later
        later = steps[k] * shape[k]
    return steps


def _splits(shape: Shape, axis: int, size: int) -> bool:
    """Whether an axis before the next `size` elements has to be joined with them."""
    while axis >= 0 and size > 1 and size % shape[axis] == 0:
        size //= shape[axis]
        axis -= 1
    return size > 1
