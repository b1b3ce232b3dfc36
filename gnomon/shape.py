"""Shapes: the immutable `Shape` of the tensor layer, and arithmetic on plain tuples."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final, SupportsIndex

from gnomon.base import ParamError, ShapeError, complaint


def prod(shape: Iterable[int]) -> int:
    """The number of elements in `shape`; 1 for a scalar's.

    >>> prod((2, 3)), prod(())
    (6, 1)
    """
    return math.prod(shape)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a dense array of `shape` whose last axis runs fastest.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return _row_major(tuple(shape))


@functools.lru_cache(maxsize=4096)
def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * int(shape[axis + 1])
    return tuple(strides)


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether these are the strides of a dense array; that of an axis of 1 may be any.

    >>> is_row_major((2, 1, 4), (4, 7, 1)), is_row_major((2, 4), (5, 1))
    (True, False)
    """
    if len(shape) == len(strides) and tuple(strides) == _row_major(tuple(shape)):
        return True
    dense = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if s != dense and n != 1:
            return False
        dense *= n
    return True


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of (N, C, space...) that lies without gaps in the order N, space, C.

    >>> channels_last((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    steps = row_major((shape[0], *shape[2:], shape[1]))
    return steps[0], steps[-1], *steps[1:-1]


def is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether these are the strides of such an array; that of an axis of 1 may be any.

    >>> is_channels_last((2, 3, 4, 5), (60, 1, 15, 3)), is_channels_last((2, 3), (3, 1))
    (True, False)
    """
    if len(shape) < 3:
        return False
    (n, c, *space), (a, b, *rest) = shape, strides
    return is_row_major((n, *space, c), (a, *rest, b))


#: how commands declare `--shapes`, for argparse
SHAPES_OPTION: Final[dict[str, Any]] = {
    "nargs": "+",
    "action": "extend",
    "metavar": "NAME:SIZExSIZE",
    "help": "of inputs, as data:1x3x224x224",
}


def named_shape(where: str, word: str, of_items: bool = False) -> tuple[str, tuple[int, ...]]:
    """Name and shape of an input, as a command is given them after `--shapes`.

    `of_items`: without the axis of the batch; -1 is any size, and no size at all a plain number.

    >>> named_shape("inspect", "data:1x3x224x224"), named_shape("serve", "net:data:-1", True)
    (('data', (1, 3, 224, 224)), ('net:data', (-1,)))

    Raises:
        ParamError: the word is something else.
    """
    name, colon, sizes = word.rpartition(":")
    parts = sizes.split("x") if sizes else []
    known = all(part.isascii() and part.removeprefix("-").isdecimal() for part in parts)
    shape = tuple(map(int, parts)) if known else ()
    least = -1 if of_items else 1
    fits = all(size >= least and size for size in shape) and (of_items or shape)
    if not known or not colon or not name or name.endswith(":") or not fits:
        expected = f"NAME:SIZExSIZE..., as data:{'' if of_items else '1x'}3x224x224"
        raise ParamError(complaint(where, "--shapes", expected, repr(word)))
    return name, shape


def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape of `a` and `b` stretched over each other: axes meet from the right, 1 fits all.

    >>> broadcast_shapes((5, 1, 3), (4, 1))
    (5, 4, 3)

    Raises:
        ShapeError: two axes differ and neither is 1.
    """
    rank = max(len(a), len(b))
    left = (1,) * (rank - len(a)) + tuple(a)
    right = (1,) * (rank - len(b)) + tuple(b)
    found = tuple([n if m == 1 else m for m, n in zip(left, right, strict=True)])
    if found != tuple([m if n == 1 else n for m, n in zip(left, right, strict=True)]):
        raise ShapeError(f"shapes {tuple(a)} and {tuple(b)} do not broadcast over each other")
    return found


class Shape(tuple[int, ...]):
    """An immutable shape, with the tensor layer's ways of looking at it.

    >>> s = Shape((2, 3, 4))
    >>> s.size(), s.flat_to_1d(), s.flat_to_2d(), s.sub_shape(), s.slice(1, 3)
    (24, Shape(24,), Shape(6, 4), Shape(3, 4), Shape(3, 4))

    Raises:
        ShapeError: an extent is negative or not an integer.
    """

    __slots__ = ()

    def __new__(cls, extents: Iterable[SupportsIndex] = ()) -> Shape:
        try:
            values = tuple(operator.index(n) for n in extents)
        except TypeError as error:
            raise ShapeError(complaint("Shape", "extents", "integers", repr(extents))) from error
        if any(n < 0 for n in values):
            raise ShapeError(complaint("Shape", "extents", "none below 0", values))
        return super().__new__(cls, values)

    def __repr__(self) -> str:
        return f"Shape{tuple(self)!r}"

    def size(self) -> int:
        """The number of elements."""
        return prod(self)

    def prod_shape(self, start: int, stop: int) -> int:
        """The number of elements spanned by the axes from `start` to before `stop`."""
        return prod(self[start:stop])

    def flat_to_1d(self) -> Shape:
        """All axes joined into one."""
        return Shape((self.size(),))

    def flat_to_2d(self) -> Shape:
        """All axes but the last joined into rows; a scalar's shape becomes (1, 1)."""
        return Shape((prod(self[:-1]), self[-1] if self else 1))

    def sub_shape(self) -> Shape:
        """The shape of one element along the first axis.

        Raises:
            ShapeError: there is no axis to take off.
        """
        if not self:
            raise ShapeError(complaint("Shape.sub_shape", "self", "at least one axis", self))
        return Shape(self[1:])

    def slice(self, start: int, stop: int) -> Shape:
        """The axes from `start` to before `stop`."""
        return Shape(self[start:stop])


def Shape1(s0: int) -> Shape:
    """A shape with one axis."""
    return Shape((s0,))


def Shape2(s0: int, s1: int) -> Shape:
    """A shape with two axes."""
    return Shape((s0, s1))


def Shape3(s0: int, s1: int, s2: int) -> Shape:
    """A shape with three axes."""
    return Shape((s0, s1, s2))


def Shape4(s0: int, s1: int, s2: int, s3: int) -> Shape:
    """A shape with four axes."""
    return Shape((s0, s1, s2, s3))


def Shape5(s0: int, s1: int, s2: int, s3: int, s4: int) -> Shape:
    """A shape with five axes."""
    return Shape((s0, s1, s2, s3, s4))


def convert_layout(shape: Sequence[int], source: str, target: str) -> Shape:
    """`shape`, whose axes are named by the letters of `source`, in the order of `target`.

    >>> convert_layout((8, 3, 32, 48), "NCHW", "NHWC")
    Shape(8, 32, 48, 3)

    Raises:
        ShapeError: the layouts do not name the same axes, or `shape` has another rank.
    """
    if not all(isinstance(layout, str) for layout in (source, target)):
        got = f"{type(source).__name__} and {type(target).__name__}"
        raise TypeError(complaint("convert_layout", "source, target", "letters", got))
    if len(set(source)) != len(source) or sorted(source) != sorted(target):
        expected = f"the axes of {source!r}, each once"
        raise ShapeError(complaint("convert_layout", "target", expected, repr(target)))
    shape = Shape(shape)
    if len(shape) != len(source):
        expected = f"{len(source)} axes for layout {source!r}"
        raise ShapeError(complaint("convert_layout", "shape", expected, tuple(shape)))
    return Shape(shape[source.index(axis)] for axis in target)
