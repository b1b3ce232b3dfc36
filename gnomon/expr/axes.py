"""Axes as users give them: negative ones counted from the end, one or several, checked."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from gnomon.base import ShapeError, complaint, shown
from gnomon.shape import prod

LIMIT = 1 << 63


def normal_axis(where: str, axis: int, ndim: int) -> int:
    """`axis` from 0 up; a ShapeError of the function `where` if there is no such axis.

    >>> normal_axis("flip", -1, 3)
    2
    """
    number = whole(where, "axis", axis)
    if not -ndim <= number < ndim:
        expected = f"an axis from 0 to {ndim - 1}" if ndim else "an operand with axes"
        raise ShapeError(complaint(where, "axis", expected, number))
    return number % ndim


def whole(where: str, name: str, value: Any, low: int | None = None) -> int:
    """`value` as a whole number of 64 bits, `low` at least; a TypeError or ShapeError otherwise.

    >>> whole("repmat", "nrow", 3, 1)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        got = repr(value) if isinstance(value, float | str) else f"a {type(value).__name__}"
        raise TypeError(complaint(where, name, "a whole number", got)) from None
    if (low is not None and number < low) or not -LIMIT <= number < LIMIT:
        expected = "a number of 64 bits" if low is None else f"a whole number of at least {low}"
        raise ShapeError(complaint(where, name, expected, number))
    return number


def checked_sizes(where: str, shape: Iterable[int], name: str = "shape") -> tuple[int, ...]:
    """`shape` as sizes of at least 0, of at most 2^63 elements together.

    Raises:
        TypeError: no whole numbers.
        ShapeError: a negative size, or too many elements.
    """
    try:
        sizes = tuple([operator.index(n) for n in shape])
    except TypeError:
        expected = f"whole numbers, as ({shape},)" if isinstance(shape, int) else "whole numbers"
        raise ShapeError(complaint(where, name, expected, shown(shape))) from None
    if any(n < 0 for n in sizes):
        raise ShapeError(complaint(where, name, "sizes of at least 0", sizes))
    if prod([n for n in sizes if n]) >= LIMIT:
        raise ShapeError(complaint(where, name, "sizes of fewer than 2**63 elements", sizes))
    return sizes


def normal_axes(where: str, axes: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """Several axes, ascending; None means all."""
    if axes is None:
        return tuple(range(ndim))
    given = tuple(axes) if isinstance(axes, Iterable) else (axes,)
    found = sorted(normal_axis(where, a, ndim) for a in given)
    if len(set(found)) != len(found):
        raise ShapeError(complaint(where, "axes", "each axis once", given))
    return tuple(found)


def one_each(where: str, name: str, values: Any, count: int) -> tuple[int, ...]:
    """`values` as a tuple of `count` numbers; a TypeError or ShapeError where they are not."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        got = f"a {type(values).__name__}"
        raise TypeError(complaint(where, name, "whole numbers, one an axis", got))
    try:
        values = tuple(values)
    except TypeError:  # an array without axes
        raise TypeError(complaint(where, name, "whole numbers, one an axis", "one")) from None
    if len(values) != count:
        raise ShapeError(complaint(where, name, f"{count} numbers, one an axis", values))
    return tuple([whole(where, name, n) for n in values])
