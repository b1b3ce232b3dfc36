"""Rows of an h5py data set, read when a batch asks for them: the file may be larger than memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.dtype import float32


class Dataset:
    """The rows of `source`, in `order`; slices of it are NDArrays of float32.

    h5py reads rows by increasing numbers only, so a slice is read in that order and then permuted.
    """

    dtype = float32.numpy.type

    def __init__(self, source: Any, order: np.ndarray | None = None) -> None:
        self.source, self.order = source, order
        self.shape: tuple[int, ...] = source.shape

    def __getitem__(self, rows: slice) -> Any:
        if self.order is None:
            return nd.array(self.source[rows])
        numbers = self.order[rows]
        places = np.argsort(numbers)
        found = np.empty((len(numbers), *self.shape[1:]), self.source.dtype)
        found[places] = self.source[numbers[places]]
        return nd.array(found)

    def reordered(self, order: np.ndarray) -> Dataset:
        """The same rows, taken in `order` from those of today."""
        return Dataset(self.source, order.copy() if self.order is None else self.order[order])


def is_dataset(thing: Any) -> bool:
    """Whether this is an h5py data set; h5py itself need not be there."""
    kind = type(thing)
    return kind.__module__.partition(".")[0] == "h5py" and kind.__name__ == "Dataset"
