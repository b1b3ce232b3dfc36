"""Rows of LibSVM's text format as arrays in csr storage."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import FormatError, ParamError, ShapeError, complaint
from gnomon.io.rows import RowIter, Rows, dense
from gnomon.io.source import Part, files, read
from gnomon.ndarray.sparse import csr_matrix
from gnomon.ops.param import Dims, param


class Table(NamedTuple):
    """Rows in csr storage, and the number that stood first in each (NaN where there was none)."""

    first: np.ndarray[Any, Any]
    data: np.ndarray[Any, Any]
    columns: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]

    def rows(self, numbers: Rows, width: int, kind: Any) -> Any:
        """Some rows as a csr array."""
        counts = np.diff(self.starts)[numbers]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[numbers] - starts[:-1], counts)
        parts = (self.data[places].astype(kind), self.columns[places], starts)
        return csr_matrix(parts, shape=(len(numbers), width), dtype=kind)


class LibSVMIter(Part, RowIter):
    """Batches in csr storage from lines `label column:value ...`, columns counted from 0.

    With `label_libsvm` labels are csr too: the lines of that file, whose own labels are not read.
    A label may be written with a weight, as `1:0.5`, which is not read either.

    Raises:
        FormatError: a line is not of this form, or names a column that the shape lacks.
        ShapeError: there are more or fewer labels than rows.
    """

    data_libsvm: str = param(doc="The file, or a folder of files.")
    data_shape: Dims = param(low=1, doc="Shape of one row: the number of columns.")
    label_libsvm: str | None = param(None, doc="A file of labels that are rows themselves.")
    label_shape: Dims = param((1,), low=1, doc="Shape of one row's label.")

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in ("data_shape", "label_shape"):
            if len(getattr(self, name)) != 1:
                raise ParamError(complaint("LibSVMIter", name, "one axis", getattr(self, name)))
        self._kind = dtypes.of(self.dtype or "float32").numpy
        self._table = table(self.data_libsvm, self.data_shape[0])
        self._label_table: Table | None = None
        if self.label_libsvm not in (None, "NULL"):
            self._label_table = table(self.label_libsvm, self.label_shape[0])
            if len(self._label_table.first) != len(self._table.first):
                expected = f"{len(self._table.first)} lines, as data_libsvm has"
                got = len(self._label_table.first)
                raise ShapeError(complaint("LibSVMIter", "label_libsvm", expected, got))
        part = self.part(len(self._table.first))
        self._start = part.start
        self._begin(len(part))

    def _data(self, rows: Rows) -> Any:
        return self._table.rows(rows + self._start, self.data_shape[0], self._kind)

    def _label(self, rows: Rows) -> Any:
        if self._label_table is not None:
            return self._label_table.rows(rows + self._start, self.label_shape[0], np.float32)
        return dense(self._table.first[rows + self._start].astype(np.float32))


def table(path: str, width: int) -> Table:
    """The rows in a file, or in all files of a folder, none of which names column `width`."""
    first: list[float] = []
    starts, columns, values = [0], [], []
    for name in files("LibSVMIter", path):
        for number, line in enumerate(read("LibSVMIter", name).splitlines(), 1):
            words = line.partition(b"#")[0].split()
            if not words:
                continue
            try:
                label, *_ = map(float, words.pop(0).split(b":"))  # a weight may follow
                pairs = [word.split(b":") for word in words]
                columns += [int(column) for column, _ in pairs]
                values += [float(value) for _, value in pairs]
            except ValueError:
                got = line[:60].decode(errors="replace")
                raise FormatError(
                    f"LibSVMIter: {name}, line {number}: expected 'label column:value ...', "
                    f"got {got!r}"
                ) from None
            first.append(label)
            starts.append(len(values))
            if any(not 0 <= c < width for c in columns[starts[-2] :]):
                expected = f"columns from 0 to {width - 1}"
                got = max(columns[starts[-2] :], key=abs)
                raise FormatError(
                    f"LibSVMIter: {name}, line {number}: expected {expected}, got {got}"
                )
    return Table(np.array(first), np.array(values), np.array(columns, np.int64), np.array(starts))
