"""Stable orders of keys, by NumPy's vectorised sort.

Keys become unsigned codes of the same order. NumPy's fast sort is not stable, but of numbers that
carry their position in the lower half no two are equal, so codes of 32 bits are sorted in the upper
halves of 64; wider ones by their lower halves first, then by the upper ones.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gnomon.native.serve import raw_function
from gnomon.native.words import double_bits
from gnomon.runtime.ffi import Block, pointer
from gnomon.shadow.selection_code import Selection, first_doubles, first_singles

Array = np.ndarray[Any, Any]
WIDE = ("i8", "u8")  # what floats of 64 bits do not hold
LOWER = 0 if sys.byteorder == "little" else 1  # where the lower half of 64 bits lies


def order_of(keys: Array, is_ascend: bool, count: int | None = None) -> Array:
    """Where the elements in order stand along the last axis, equal ones as they were, NaN last.

    Of each row the first `count`, or all.

    >>> order_of(np.array([2.0, np.nan, 1.0, 2.0]), False)
    array([0, 3, 2, 1])
    """
    if count:
        numbers = _numbers(keys)
        few = _best(numbers, is_ascend) if count == 1 else None
        if few is None and 8 * count <= keys.shape[-1] and numbers.dtype.str[1:] not in WIDE:
            few = _few(numbers, is_ascend, count)
        if few is not None:
            return few
    codes = codes_of(keys, is_ascend)
    if codes.itemsize == 4:
        return _places(codes, count)
    halves = codes.view(np.uint32).reshape(*codes.shape, 2)
    order = _places(halves[..., LOWER], None)
    upper = np.take_along_axis(halves[..., 1 - LOWER], order, -1)
    return np.take_along_axis(order, _places(upper, count), -1)


def _numbers(keys: Array) -> Array:
    """Keys of which NumPy tells what is not a number: half floats as float32."""
    if keys.dtype.kind in "biu":
        return keys
    return keys.astype(f"f{max(4, keys.dtype.itemsize)}", copy=False)


def _best(keys: Array, is_ascend: bool) -> Array | None:
    """The same for one of each row; None where one has what is not a number."""
    found = (keys.argmin if is_ascend else keys.argmax)(-1)[..., None]
    best = np.take_along_axis(keys, found, -1)
    return found if (best == best).all() else None


def _few(keys: Array, is_ascend: bool, count: int) -> Array | None:
    """The same for few of many; None where a row has not so many numbers."""
    wide = np.ascontiguousarray(keys, np.result_type(keys.dtype, np.float32))
    places = np.empty((*keys.shape[:-1], count), np.int64)
    addresses = wide.ctypes.data, places.ctypes.data
    sizes = places.size // count, keys.shape[-1], count, wide.itemsize
    block = Block([*addresses, *sizes, double_bits(-1.0 if is_ascend else 1.0), 0])
    raw_function(first_singles if wide.itemsize == 4 else first_doubles)(pointer(block.address))
    return None if block.words[Selection.lacking] else places


def _places(codes: Array, count: int | None) -> Array:
    """The same for codes of 32 bits."""
    length = codes.shape[-1]
    if length >= 1 << 32:  # no room for the position
        return np.argsort(codes, axis=-1, kind="stable")[..., :count]
    packed = codes.astype(np.uint64)
    packed <<= np.uint64(32)
    packed |= np.arange(length, dtype=np.uint64)
    if count is not None and 0 < count < length:
        packed.partition(count - 1, axis=-1)
    packed[..., :count].sort(axis=-1)
    packed &= np.uint64((1 << 32) - 1)
    return packed[..., :count].view(np.int64)


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
