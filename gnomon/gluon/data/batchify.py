"""How samples become a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd


def stacked(samples: Sequence[Any]) -> Any:
    """Samples side by side as NumPy arrays; samples that are tuples give a list, part by part."""
    first = samples[0]
    if isinstance(first, tuple):
        return [stacked(part) for part in zip(*samples, strict=True)]
    if isinstance(first, nd.NDArray):
        return np.stack([sample.asnumpy() for sample in samples])
    return np.asarray(samples)


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Samples side by side as NDArrays; samples that are tuples give a list, part by part.

    >>> images, labels = default_batchify_fn([(nd.ones((2, 2)), 1), (nd.zeros((2, 2)), 0)])
    >>> images.shape, labels.asnumpy().tolist()
    ((2, 2, 2), [1, 0])
    """
    first = data[0]
    if isinstance(first, tuple):
        return [default_batchify_fn(part) for part in zip(*data, strict=True)]
    if isinstance(first, nd.NDArray):
        return nd.stack(*data)
    array = np.asarray(data)
    return nd.array(array, dtype=array.dtype)


def default_mp_batchify_fn(data: Sequence[Any]) -> Any:
    """As `default_batchify_fn`, as worker processes do it: without operators of arrays."""
    found = stacked(data)
    return [as_ndarray(x) for x in found] if isinstance(found, list) else as_ndarray(found)


def as_ndarray(array: np.ndarray) -> nd.NDArray:
    """An NDArray on the memory of a NumPy array, which belongs to it from then on."""
    return nd.from_numpy(np.ascontiguousarray(array)).reshape(array.shape)
