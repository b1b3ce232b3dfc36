"""Which convolution: shapes, and where the windows lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gnomon.base import ParamError, ShapeError, complaint
from gnomon.ground.record import record
from gnomon.shape import prod

Sizes = tuple[int, ...]


@record(slots=False)
class Convolution:
    """Which convolution: shapes, and where the windows lie, one number for each spatial axis.

    `data` is (N, C, space...), `weight` (filters, C / groups, kernel...); `pad_right` is `pad_left`
    where it is not given, `dilate` 1 means windows without holes.

    >>> Convolution((2, 3, 8, 8), (4, 3, 3, 3), stride=(2, 2), pad_left=(1, 1)).out
    (2, 4, 4, 4)

    Raises:
        ShapeError: the weight does not fit the data, or a size is 0, or a window is too large.
        ParamError: not one number for each axis, or a stride or dilation below 1.
    """

    data: Sizes
    weight: Sizes
    stride: Sizes = ()
    dilate: Sizes = ()
    pad_left: Sizes = ()
    pad_right: Sizes = ()
    groups: int = 1

    def __post_init__(self) -> None:
        axes = len(self.data) - 2
        for name, default in (("stride", 1), ("dilate", 1), ("pad_left", 0)):
            check_axes(self, name, (default,) * axes, default)
        check_axes(self, "pad_right", self.pad_left, 0)
        fits = len(self.weight) == len(self.data) and 1 <= axes <= 3
        if fits:
            channels, filters = self.weight[1] * self.groups, self.weight[0]
            fits = channels == self.data[1] and filters % self.groups == 0
        if not fits or min(*self.data, *self.weight) < 1:
            expected = f"(filters, {self.data[1:2]} / {self.groups}, kernel...) without zeros"
            raise ShapeError(complaint("Convolution", "weight", expected, self.weight))
        if min(self.out[2:]) < 1:
            expected = f"a window inside the padded data {self.data[2:]}"
            raise ShapeError(complaint("Convolution", "weight", expected, self.weight))

    @property
    def out(self) -> Sizes:
        """The shape of the result: (N, filters, places...)."""
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilate, self.weight[2:], strict=True)]
        places = windows(self.data[2:], reach, self.stride, self.pad_left, self.pad_right)
        return (self.data[0], self.weight[0], *places)

    @property
    def grouped(self) -> Sizes:
        """The weight's shape as oneDNN has it: with the groups as an axis of their own."""
        filters, *rest = self.weight
        return self.weight if self.groups == 1 else (self.groups, filters // self.groups, *rest)

    @property
    def work(self) -> int:
        """Multiply-adds for the whole batch."""
        return prod(self.out) * prod(self.weight[1:])

    def of(self, batch: int) -> Convolution:
        """The same for another number of images."""
        return replace(self, data=(batch, *self.data[1:]))

    def geometry(self) -> tuple[Sizes, Sizes, Sizes, Sizes]:
        """The arguments that oneDNN takes: it counts holes, not distances."""
        return self.stride, tuple(d - 1 for d in self.dilate), self.pad_left, self.pad_right


def pieces(n: int, parts: int) -> list[tuple[int, int]]:
    """`n` things in `parts` runs as equal as can be: (start, count) of each.

    >>> pieces(7, 3)
    [(0, 3), (3, 2), (5, 2)]
    """
    short, more = divmod(n, parts)
    counts = [short + (i < more) for i in range(parts)]
    return [(sum(counts[:i]), count) for i, count in enumerate(counts)]


def windows(space: Sizes, reach: Sequence[int], stride: Sizes, left: Sizes, right: Sizes) -> Sizes:
    """How many windows there are along each axis."""
    axes = zip(space, reach, stride, left, right, strict=True)
    return tuple((n + before + after - k) // s + 1 for n, k, s, before, after in axes)


def check_axes(geometry: Any, name: str, default: Sizes, low: int) -> None:
    """Fills the field `name` with its default where it is empty; ParamError where it is wrong."""
    value = tuple(getattr(geometry, name)) or default
    axes = len(geometry.data) - 2
    if len(value) != axes or min(value, default=low) < low:
        expected = f"{axes} numbers of at least {low}"
        raise ParamError(complaint(type(geometry).__name__, name, expected, value))
    object.__setattr__(geometry, name, value)
