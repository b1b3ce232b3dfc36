"""Stable orders of keys, by digits of 11 bits where there are many, and by NumPy's sort.

Keys become unsigned codes of the same order, and up to 32 bits are sorted together with their
positions: many by `runtime.radix`, which goes through them seven times; few by NumPy's vectorised
sort, which is not stable, but of numbers that carry their position in the lower half no two are
equal. Many wider keys are sorted by their lower halves, then by the upper ones.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gnomon.runtime.radix import sort_pairs

Array = np.ndarray[Any, Any]
MANY = 1 << 14  # elements that are worth the digits' tables
NEGATIVE_ZERO = 1 << 31
LOWER = 0 if sys.byteorder == "little" else 1  # where the lower half of 64 bits lies


def sorted_together(keys: Array, values: Array, is_ascend: bool) -> bool:
    """Whether `values` could be sorted in place with `keys`, word by word: then they are.

    >>> keys, values = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.int32)
    >>> sorted_together(keys, values, False)  # too few
    False
    """
    words = all(a.itemsize == 4 and a.flags.c_contiguous for a in (keys, values))
    if not words or len(keys) < MANY or np.may_share_memory(keys, values):
        return False
    codes = keys.view(np.uint32)
    if keys.dtype.kind == "f" and (np.isnan(keys).any() or (codes == NEGATIVE_ZERO).any()):
        return False  # of all other numbers the bits have the order
    sort_pairs(keys, values, is_ascend)
    return True


def order_of(keys: Array, is_ascend: bool) -> Array:
    """Where each element of the sorted vector `keys` stands in it; equal ones in order, NaN last.

    >>> order_of(np.array([2.0, np.nan, 1.0, 2.0]), False)
    array([0, 3, 2, 1])
    """
    codes = codes_of(keys, is_ascend)
    if codes.itemsize == 4:
        return places(codes, np.arange(len(codes)))
    if len(codes) < MANY:
        return np.argsort(codes, kind="stable")
    halves = codes.view(np.uint32).reshape(-1, 2)
    order = places(halves[:, LOWER], np.arange(len(codes)))
    return places(halves[order, 1 - LOWER], order)


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
    """`positions` in the order of their codes of 32 bits, equal ones as they were."""
    if MANY <= len(codes) < 1 << 32:
        codes, narrow = np.array(codes), positions.astype(np.uint32)
        sort_pairs(codes, narrow)
        return narrow.astype(np.intp)
    packed = codes.astype(np.uint64)
    packed <<= np.uint64(32)
    packed |= np.arange(len(codes), dtype=np.uint64)
    packed.sort()
    return positions[packed.view(np.uint32)[LOWER::2]]
