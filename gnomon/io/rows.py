"""Batches of rows by their numbers: what iterators over tables in memory share.

State: an epoch begins at row `_first` and takes every row from there once; `_next` is the row that
the next batch begins at. With `round_batch` the last batch goes on at row 0, and the next epoch
begins behind what it took.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import FormatError
from gnomon.io.desc import DataBatch, DataDesc
from gnomon.io.source import SourceIter
from gnomon.ops.param import param

Rows = np.ndarray[Any, np.dtype[np.int64]]


class RowIter(SourceIter):
    """Base: a subclass gives `_count`, and a batch's arrays by `_data(rows)`, `_label(rows)`."""

    round_batch: bool = param(True, doc="Fill the last batch from the start of the next epoch.")

    _count = 0
    _drops_last = False

    def _begin(self, count: int) -> None:
        """Start the first epoch over `count` rows."""
        if count == 0:
            raise FormatError(f"{type(self).__name__}: there are no rows to read")
        self._count = count
        self._first = self._next = 0

    def _data(self, rows: Rows) -> Any:
        raise TypeError(f"{type(self).__name__} does not say its data")

    def _label(self, rows: Rows) -> Any:
        raise TypeError(f"{type(self).__name__} does not say its labels")

    @property
    def provide_data(self) -> list[DataDesc]:
        """The description of a batch's data."""
        return [self._described(self.data_name, self._data(self._numbers(0)))]

    @property
    def provide_label(self) -> list[DataDesc]:
        """The description of a batch's labels."""
        return [self._described(self.label_name, self._label(self._numbers(0)))]

    def _described(self, name: str, array: Any) -> DataDesc:
        return DataDesc(name, array.shape, array.dtype)

    def _numbers(self, start: int) -> Rows:
        """The rows of the batch that begins at `start`; behind the last one come the first."""
        return np.arange(start, start + self.batch_size) % self._count

    def reset(self) -> None:
        """Start the next epoch; the same one again where it has not come to its end."""
        if self._next >= self._count and self.round_batch:
            self._first = (self._next - self._count) % self._count
        self._next = self._first

    def _following(self) -> DataBatch | None:
        if self._next + (self.batch_size - 1 if self._drops_last else 0) >= self._count:
            return None
        rows = self._numbers(self._next)
        self._next += self.batch_size
        pad = max(0, self._next - self._count)
        return DataBatch(
            [self._data(rows)], [self._label(rows)], pad=pad, index=rows.astype(np.uint64)
        )


def dense(rows: np.ndarray[Any, Any]) -> Any:
    """An NDArray of these rows."""
    return nd.array(rows, dtype=rows.dtype)
