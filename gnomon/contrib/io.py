"""`DataLoaderIter`: the batches of a gluon `DataLoader` as a data iterator of a module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gnomon import ndarray as nd
from gnomon.base import ParamError, complaint, shown
from gnomon.io import DataDesc, DataIter

__all__ = ["DataDesc", "DataIter", "DataLoaderIter"]


class DataLoaderIter(DataIter):
    """Batches of `loader`, which gives pairs of data and label, in the type `dtype`.

    The first batch says the shapes. A shorter one is filled by repeating its own rows; its `pad`
    says how many rows do not count.

    >>> import numpy as np
    >>> from gnomon.gluon.data import ArrayDataset, DataLoader
    >>> loader = DataLoader(ArrayDataset(np.ones((3, 2)), np.arange(3)), batch_size=2)
    >>> batches = DataLoaderIter(loader)
    >>> batches.provide_data, [batch.pad for batch in batches]
    ([DataDesc[data,(2, 2),float32,NCHW]], [0, 1])

    Raises:
        ParamError: there is no batch, one is no pair, or one has more rows than the first.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self._loader, self.dtype = loader, dtype
        first = next(iter(loader), None)
        if first is None:
            raise ParamError(complaint("DataLoaderIter", "loader", "at least one batch", "none"))
        data, label = _pair(first)
        self.batch_size = data.shape[0]
        self.provide_data = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, dtype)]
        self.reset()

    def reset(self) -> None:
        """Begin an epoch of the loader."""
        self._epoch = iter(self._loader)
        self._current: tuple[Any, Any] | None = None

    def iter_next(self) -> bool:
        """Move to the next batch and tell whether there is one.

        Raises:
            ParamError: it is no pair, or has more rows than the first.
        """
        batch = next(self._epoch, None)
        self._current = None if batch is None else _pair(batch)
        if self._current and self._current[0].shape[0] > self.batch_size:
            expected = f"batches of at most {self.batch_size} rows, as the first"
            got = f"one of {self._current[0].shape[0]}"
            raise ParamError(complaint("DataLoaderIter", "loader", expected, got))
        return self._current is not None

    def getdata(self) -> list[Any]:
        """The data of the current batch, alone in a list."""
        return [self._filled(0)]

    def getlabel(self) -> list[Any]:
        """The label of the current batch, alone in a list."""
        return [self._filled(1)]

    def getpad(self) -> int:
        """How many rows at the end repeat others."""
        return self.batch_size - self._batch()[0].shape[0]

    def _batch(self) -> tuple[Any, Any]:
        if self._current is None:
            raise StopIteration
        return self._current

    def _filled(self, which: int) -> Any:
        """The array of the current batch with all its rows."""
        array = self._batch()[which].astype(self.dtype)
        if not self.getpad():
            return array
        rows = nd.arange(self.batch_size, dtype="int64") % array.shape[0]
        return nd.take(array, rows)


def _pair(batch: Any) -> tuple[Any, Any]:
    """The data and the label of a batch of a loader.

    Raises:
        ParamError: it has others, or none.
    """
    fits = isinstance(batch, (list, tuple)) and len(batch) == 2
    if not fits or not all(isinstance(x, nd.NDArray) for x in batch):
        expected = "batches that are pairs of arrays, data and label"
        raise ParamError(complaint("DataLoaderIter", "loader", expected, shown(batch)))
    return batch[0], batch[1]
