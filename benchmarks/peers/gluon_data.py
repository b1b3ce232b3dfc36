"""Batches and first weights of the Gluon benchmark, the same for every peer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

PROOF = 5  # steps whose loss is compared
WARM = 20  # steps behind them, not timed: gnomon compiles a recorded step that came often


def batch(size: int, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels."""
    rng = np.random.RandomState(7)
    return np.float32(rng.uniform(-1, 1, (size, *shape))), np.float32(rng.randint(0, 4, size))


def weights(shapes: Sequence[Sequence[int]]) -> Iterator[np.ndarray]:
    """The weights of a network, in the order of its layers; all else begins as usual."""
    for number, shape in enumerate(shapes):
        scale = np.sqrt(3 / np.prod(shape[1:]))
        yield np.float32(np.random.RandomState(number).uniform(-scale, scale, shape))
