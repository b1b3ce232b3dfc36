"""Facts about keys of `x[key]`, for programs that index in a manner of their own."""

from __future__ import annotations

from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.ndarray.api.indexing import is_basic, spelled_out


def get_indexing_dispatch_code(key: Any) -> int:
    """0 for a tuple of numbers, slices, None and `...`, which gives a view; 1 for any other.

    >>> get_indexing_dispatch_code((1, slice(None))), get_indexing_dispatch_code(([0, 1],))
    (0, 1)

    Raises:
        ParamError: the key is no tuple.
    """
    if not isinstance(key, tuple):
        raise ParamError(complaint("get_indexing_dispatch_code", "key", "a tuple", repr(key)))
    return 0 if is_basic(key) else 1


def get_oshape_of_gather_nd_op(dshape: tuple[int, ...], ishape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that `gather_nd` gives for data and indices of these shapes.

    >>> get_oshape_of_gather_nd_op((3, 4, 5), (2, 6))
    (6, 5)
    """
    return (*ishape[1:], *dshape[ishape[0] :])


def indexing_key_expand_implicit_axes(
    key: Any, shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], int]:
    """A key with a part for each axis, and -1: no `...` is left.

    >>> indexing_key_expand_implicit_axes((..., 1), (3, 4))
    ((slice(None, None, None), 1), -1)

    Raises:
        IndexError: too many parts, or several `...`.
    """
    return tuple(spelled_out(key, len(shape))), -1
