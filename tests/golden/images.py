"""Operators on images, run alike by the real library and by gnomon."""

from __future__ import annotations

from typing import Any

import numpy as np

UINT8, REALS = ("uint8",), ("uint8", "float32")
FACTOR = {"min_factor": 1.5, "max_factor": 1.5}
CASES: list[tuple[str, tuple[int, ...], tuple[str, ...], dict[str, Any]]] = [
    ("to_tensor", (3, 4, 3), REALS, {}),
    ("to_tensor", (2, 3, 4, 1), REALS, {}),
    ("normalize", (3, 3, 4), ("float32",), {"mean": (1.0, 20.0, 3.0), "std": (4.0, 5.0, 6.0)}),
    ("normalize", (2, 1, 3, 4), ("float32",), {"mean": 7.0, "std": 2.0}),
    ("crop", (4, 5, 3), REALS, {"x": 1, "y": 2, "width": 3, "height": 2}),
    ("crop", (2, 4, 5, 1), REALS, {"x": 0, "y": 1, "width": 5, "height": 2}),
    ("flip_left_right", (3, 4, 3), REALS, {}),
    ("flip_top_bottom", (4, 3, 3), REALS, {}),
    ("random_brightness", (3, 4, 3), REALS, FACTOR),
    ("random_brightness", (3, 4, 1), REALS, FACTOR),
    ("random_contrast", (3, 4, 3), REALS, FACTOR),
    ("random_contrast", (3, 4, 1), REALS, FACTOR),
    ("random_hue", (3, 4, 3), REALS, {"min_factor": 1.25, "max_factor": 1.25}),
    ("random_hue", (3, 4, 3), REALS, {"min_factor": 0.55, "max_factor": 0.55}),
    ("adjust_lighting", (3, 4, 3), REALS, {"alpha": (0.5, -0.3, 0.2)}),
    *(("resize", (5, 7, 3), REALS, {"size": (4, 9), "interp": k}) for k in range(5)),
    ("resize", (5, 7, 3), REALS, {"size": 4, "keep_ratio": True}),
    ("resize", (7, 5, 1), REALS, {"size": 9, "keep_ratio": True}),
    ("resize", (2, 5, 7, 3), REALS, {"size": 6}),
]


def results(mx: Any) -> list[Any]:
    """What the cases give."""
    rng = np.random.RandomState(4)
    found = []
    for name, shape, dtypes, params in CASES:
        values = rng.randint(0, 256, shape)
        for dtype in dtypes:
            out = getattr(mx.nd.image, name)(mx.nd.array(values, dtype=dtype), **params)
            numbers = out.asnumpy().astype("d").round(4).ravel()
            found.append([list(out.shape), np.dtype(out.dtype).name, numbers.tolist()])
    return found
