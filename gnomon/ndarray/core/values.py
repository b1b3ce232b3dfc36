"""Values that users give, as the elements of an array's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.dtype import DType
from gnomon.expr.functions.primitive import convert


def converted(source: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """A new NumPy array of `dtype` with the values of `source`.

    Floats, and numbers in lists, become the nearest that an integer type holds, NaN 0; arrays of
    integers keep their low bits, as `astype` does.

    Raises:
        TypeError, ValueError: the values are no array of numbers.
    """
    if dtype.kind not in "iu":
        return np.array(source, dtype.numpy, order="C")
    values = np.asarray(source)
    kind = values.dtype.kind
    listed = kind in "iu" and not hasattr(source, "dtype")
    if kind == "O" or (listed and not _inside(values, dtype)):
        flat = [dtype.nearest(x) for x in values.ravel().tolist()]
        return np.array(flat, dtype.numpy).reshape(values.shape)
    if kind == "f" and not _inside(values, dtype):
        return np.asarray(convert(values, dtype.numpy), order="C")
    return np.array(values, dtype.numpy, order="C")


def _inside(values: np.ndarray[Any, Any], dtype: DType) -> bool:
    """Whether an integer type holds all values but for their fractions; a NaN is not inside."""
    low, high = dtype.limits
    return not values.size or bool(low <= values.min() and values.max() <= high)
