"""Sizes of windows: what convolutions and poolings share."""

from __future__ import annotations

from typing import Any

import numpy as np

Sizes = tuple[int, ...]
Array = np.ndarray[Any, Any]


def span(kernel: Sizes, dilate: Sizes) -> Sizes:
    """How many elements a window reaches over, along each axis."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilate, strict=True))


def places(space: Sizes, reach: Sizes, stride: Sizes, pad: Sizes, full: bool = False) -> Sizes:
    """How many windows fit along each axis; with `full` the last one may hang over the end."""
    return tuple(
        (n + 2 * p - w + (s - 1 if full else 0)) // s + 1
        for n, w, s, p in zip(space, reach, stride, pad, strict=True)
    )


def windows(
    x: Array, kernel: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes, counts: Sizes, fill: float
) -> Array:
    """Every window of `x` (N, C, space...) in NumPy: (N, C, places..., kernel...)."""
    reach = span(kernel, dilate)
    after = [
        max(0, (c - 1) * s + w - n - p)
        for n, w, s, p, c in zip(x.shape[2:], reach, stride, pad, counts, strict=True)
    ]
    around = [(0, 0), (0, 0), *zip(pad, after, strict=True)]
    padded = np.pad(x, around, constant_values=fill)
    axes = tuple(range(2, x.ndim))
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axes)
    steps = tuple(slice(None, (c - 1) * s + 1, s) for c, s in zip(counts, stride, strict=True))
    inside = tuple(slice(None, None, d) for d in dilate)
    return np.asarray(seen[(slice(None), slice(None), *steps, *inside)])
