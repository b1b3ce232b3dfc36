"""Inputs of golden records: a short text that says how to draw an array, the same for all NumPys.

A spec is `[kind, shape, ...]`: `n` normal, `u` uniform from low to high, `i` integers from low up
to high, `d` distinct numbers a tenth apart in random order, `z` zeros, `o` ones, `x` normal with
NaN, infinities, zeros of both signs and the least numbers among them; or
`["v", values]`, the values themselves. `RandomState`'s streams are frozen, so a name and a spec
say everything.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40)


def draw(name: str, spec: list[Any], dtype: str = "float32") -> np.ndarray:
    """The array that `spec` describes, drawn with a seed made of `name`.

    >>> draw("x", ["i", [2, 3], 0, 5], "int32").tolist()
    [[3, 2, 3], [1, 0, 2]]
    >>> draw("x", ["v", [[1, 2]]]).dtype
    dtype('float32')
    """
    kind, shape, *bounds = spec
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    if kind == "v":
        return np.array(shape).astype(dtype)
    size = int(np.prod(shape))
    values = {
        "n": lambda: rng.standard_normal(size),
        "u": lambda: rng.uniform(*bounds, size),
        "i": lambda: rng.randint(*bounds, size=size),
        "d": lambda: (rng.permutation(size) - size // 2) / 10,
        "x": lambda: np.resize([*SPECIAL, *rng.standard_normal(9)], size),
        "z": lambda: np.zeros(size),
        "o": lambda: np.ones(size),
    }[kind]()
    return np.asarray(values).reshape(shape).astype(dtype)


def initial(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """What stands in a gradient's buffer before a request to add to it."""
    return (np.arange(int(np.prod(shape))) % 7 - 3).reshape(shape).astype(dtype)
