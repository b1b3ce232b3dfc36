"""What was seen of two runs of a random training loop (`noted.py`), compared."""

from __future__ import annotations

from typing import Any

import numpy as np

EXACT = 1 << 22  # integers beyond may be rounded


def alike(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays are equal: up to rounding where that is not of whole numbers."""
    if np.array_equal(b, np.rint(b)):
        return np.array_equal(a, b)
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-4)


def is_exact(seen: list[Any]) -> bool:
    """Whether no number is so large that it may have been rounded."""
    return all(np.abs(x).max() < EXACT for x in seen if isinstance(x, np.ndarray))


def difference(first: list[Any], second: list[Any]) -> str:
    """Where two runs differ; empty where they do not."""
    if len(first) != len(second):
        return f"{len(first)} and {len(second)} things seen"
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        if isinstance(a, str) or isinstance(b, str):
            if isinstance(a, str) != isinstance(b, str) or a != b:
                return f"{k}: {a!r:.60} and {b!r:.60}"
        elif a.dtype != b.dtype or not alike(a, b):
            return f"{k}: {a} and {b}"
    return ""
