"""Rows of comma-separated numbers."""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import FormatError, ShapeError, complaint
from gnomon.io.rows import RowIter, Rows, dense
from gnomon.io.source import files, read
from gnomon.ops.param import Dims, param
from gnomon.shape import prod


class CSVIter(RowIter):
    """Batches of the rows of a CSV file, or of all files in a folder; labels from another one.

    Without `label_csv` all labels are 0.

    Raises:
        FormatError: a file holds something else than rows of as many numbers as the shape has.
        ShapeError: there are more or fewer labels than rows.
    """

    data_csv: str = param(doc="The file, or a folder of files.")
    data_shape: Dims = param(low=1, doc="Shape of one row.")
    label_csv: str | None = param(None, doc="The file with the labels, or a folder of files.")
    label_shape: Dims = param((1,), low=1, doc="Shape of one row's label.")

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        kind = dtypes.of(self.dtype or "float32").numpy
        self._rows = self._table(self.data_csv, self.data_shape, kind)
        shape = () if self.label_shape == (1,) else self.label_shape
        if self.label_csv in (None, "NULL"):
            self._labels = np.zeros((len(self._rows), *shape), kind)
        else:
            self._labels = self._table(self.label_csv, shape, kind)
        if len(self._labels) != len(self._rows):
            expected = f"{len(self._rows)} rows, as data_csv has"
            raise ShapeError(complaint("CSVIter", "label_csv", expected, len(self._labels)))
        self._begin(len(self._rows))

    def _table(self, path: str, shape: Dims, kind: Any) -> np.ndarray[Any, Any]:
        parts = [self._file(name, shape, kind) for name in files("CSVIter", path)]
        return np.concatenate(parts)

    def _file(self, path: str, shape: Dims, kind: Any) -> np.ndarray[Any, Any]:
        content = read("CSVIter", path)
        if not content.strip():
            return np.zeros((0, *shape), kind)
        try:
            table = _numbers(content, kind)
        except (ValueError, UnicodeDecodeError) as error:
            raise FormatError(f"CSVIter: {path}: {error}") from None
        if table.shape[1] != prod(shape):
            expected = f"{prod(shape)} numbers a row, for shape {shape or (1,)}"
            raise FormatError(f"CSVIter: {path}: expected {expected}, got {table.shape[1]}")
        return table.reshape(len(table), *shape)

    def _data(self, rows: Rows) -> Any:
        return dense(self._rows[rows])

    def _label(self, rows: Rows) -> Any:
        return dense(self._labels[rows])


def _numbers(content: bytes, kind: Any) -> np.ndarray[Any, Any]:
    """The table in the text of a file; ValueError where a number is none, or not of this kind."""
    load = functools.partial(np.loadtxt, delimiter=",", ndmin=2, comments=None)
    if np.dtype(kind).kind not in "iu":
        return load(io.BytesIO(content), np.float64).astype(kind)
    try:
        table = load(io.BytesIO(content), np.int64)
    except ValueError:  # as 1.0e+00, which np.savetxt writes
        table = load(io.BytesIO(content), np.float64)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    for number in table[(table < low) | (table > high) | (table != np.floor(table))]:
        raise ValueError(f"expected whole numbers from {low} to {high}, got {number}")
    return table.astype(kind)
