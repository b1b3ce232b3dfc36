"""Shapes of which some is not known yet: 0 stands for an unknown dimension, None for a rank."""

from __future__ import annotations

from typing import Any

from gnomon.base import complaint, shown

Shape = tuple[int, ...]


def shape_is_known(shape: Shape | None) -> bool:
    """Whether every dimension is known.

    >>> shape_is_known((2, 3)), shape_is_known((2, 0)), shape_is_known(None)
    (True, False, False)
    """
    return shape is not None and all(n > 0 for n in shape)


def as_shape(shape: Any) -> Shape | None:
    """What a user gives as a shape: a number, a sequence or None."""
    if shape is None:
        return None
    try:
        return tuple(map(int, shape)) if hasattr(shape, "__iter__") else (int(shape),)
    except (TypeError, ValueError, OverflowError):
        got = shown(shape)
        raise TypeError(complaint("Parameter", "shape", "a number or numbers", got)) from None


def merged(known: Shape | None, new: Shape | None) -> Shape | None:
    """What two shapes of one thing say together; None in a tuple where they contradict.

    >>> merged((2, 0), (0, 3)), merged((2,), (3,))
    ((2, 3), None)
    """
    if known is None or new is None or len(known) != len(new):
        return None
    pairs = list(zip(known, new, strict=True))
    if any(m != n and min(m, n) > 0 for m, n in pairs):
        return None
    return tuple(max(m, n) for m, n in pairs)
