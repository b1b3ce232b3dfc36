"""How samples become a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import DTypeError, ShapeError, complaint


def stacked(samples: Sequence[Any]) -> Any:
    """Samples side by side as NumPy arrays; samples that are tuples give a list, part by part."""
    first = samples[0]
    if isinstance(first, tuple):
        return [stacked(part) for part in zip(*samples, strict=True)]
    if isinstance(first, nd.NDArray):
        return _joined(np.stack, [sample.asnumpy() for sample in samples])
    return _joined(np.asarray, samples)


def _joined(join: Callable[[Sequence[Any]], Any], samples: Sequence[Any]) -> Any:
    """What `join` makes of samples.

    Raises:
        ShapeError: they are of several shapes.
        DTypeError: they are no numbers.
    """
    try:
        found = join(samples)
        if isinstance(found, np.ndarray) and found.dtype.kind in "OSU":
            expected = "samples of numbers (else a `batchify_fn` of yours that joins them)"
            wrong = next(s for s in samples if np.asarray(s).dtype.kind in "OSU")
            got = f"{type(wrong).__name__}: {wrong!r:.60}"
            raise DTypeError(complaint("DataLoader", "dataset", expected, got))
        return found
    except ValueError as error:
        shapes = list(dict.fromkeys(map(np.shape, samples)))
        if len(shapes) < 2:
            raise
        expected = "samples of one shape in a batch (else a `batchify_fn` of yours that joins them)"
        raise ShapeError(complaint("DataLoader", "dataset", expected, shapes[:4])) from error


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
        return _joined(lambda samples: nd.stack(*samples), data)
    array = _joined(np.asarray, data)
    return nd.array(array, dtype=array.dtype)


def default_mp_batchify_fn(data: Sequence[Any]) -> Any:
    """As `default_batchify_fn`, as worker processes do it: without operators of arrays."""
    found = stacked(data)
    return [as_ndarray(x) for x in found] if isinstance(found, list) else as_ndarray(found)


def as_ndarray(array: np.ndarray) -> nd.NDArray:
    """An NDArray on the memory of a NumPy array, which belongs to it from then on."""
    return nd.from_numpy(np.ascontiguousarray(array)).reshape(array.shape)
