"""Axes as users give them: negative ones counted from the end, one or several, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnomon.base import ShapeError, complaint


def normal_axis(where: str, axis: int, ndim: int) -> int:
    """`axis` from 0 up; a ShapeError of the function `where` if there is no such axis.

    >>> normal_axis("flip", -1, 3)
    2
    """
    if not -ndim <= axis < ndim:
        raise ShapeError(complaint(where, "axis", f"an axis of {ndim}", axis))
    return axis % ndim


def normal_axes(where: str, axes: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """Several axes, ascending; None means all."""
    if axes is None:
        return tuple(range(ndim))
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    found = sorted(normal_axis(where, a, ndim) for a in given)
    if len(set(found)) != len(found):
        raise ShapeError(complaint(where, "axes", "each axis once", given))
    return tuple(found)


def one_each(where: str, name: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    """`values` as a tuple of `count` numbers."""
    if len(values) != count:
        raise ShapeError(complaint(where, name, f"{count} numbers, one an axis", tuple(values)))
    return tuple(values)
