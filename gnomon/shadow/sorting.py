"""Stable orders of keys, by NumPy's vectorised sort of unsigned integers.

That sort is not stable, but of numbers that carry their position in the lower half no two are
equal. So keys become unsigned codes of the same order, and up to 32 bits are sorted together with
their positions; wider ones first by themselves, and where some are equal once more by their rank.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LOWER = 0 if sys.byteorder == "little" else 1  # where the lower half of 64 bits lies


def order_of(keys: Array, is_ascend: bool) -> Array:
    """Where each element of the sorted vector `keys` stands in it; equal ones in order, NaN last.

    >>> order_of(np.array([2.0, np.nan, 1.0, 2.0]), False)
    array([0, 3, 2, 1])
    """
    codes = codes_of(keys, is_ascend)
    if codes.dtype.itemsize < 8:
        return places(codes, np.arange(len(codes), dtype=np.uint64))
    order = np.argsort(codes)
    ahead = codes[order]
    ranks = np.zeros(len(codes), np.uint32)
    np.cumsum(ahead[1:] != ahead[:-1], out=ranks[1:])
    if not len(ranks) or int(ranks[-1]) == len(ranks) - 1:
        return order
    return places(ranks, order.astype(np.uint64))


def codes_of(keys: Array, is_ascend: bool) -> Array:
    """Unsigned integers of 32 or 64 bits in the order wanted; of -0.0 and 0.0 the same."""
    kind = {"b": "u", "u": "u", "i": "i"}.get(keys.dtype.kind, "f")
    wide = np.dtype(f"{kind}{max(4, keys.dtype.itemsize)}")
    values = np.ascontiguousarray(keys, wide)
    unsigned = np.dtype(f"u{wide.itemsize}")
    top = unsigned.type(1 << (8 * wide.itemsize - 1))
    if wide.kind == "u":
        codes = values.copy()
    elif wide.kind == "i":
        codes = values.view(unsigned) ^ top
    else:
        values = values + wide.type(0)  # of -0.0 makes 0.0
        codes = values.view(unsigned)
        signs = values.view(f"i{wide.itemsize}") >> (8 * wide.itemsize - 1)
        codes = codes ^ (signs.view(unsigned) | top)
    if not is_ascend:
        codes = ~codes
    if wide.kind == "f":
        codes[np.isnan(values)] = np.iinfo(unsigned).max
    return codes


def places(codes: Array, positions: Array) -> Array:
    """`positions` in the order of their codes of 32 bits; of equal codes the lower one first."""
    packed = codes.astype(np.uint64)
    packed <<= np.uint64(32)
    packed |= positions
    packed.sort()
    return packed.view(np.uint32)[LOWER::2].astype(np.intp)
