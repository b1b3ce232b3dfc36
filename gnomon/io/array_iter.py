"""Batches from arrays in memory, or from h5py data sets.

State: `cursor` is the row at which the current batch starts. It is `-batch_size` before the first
batch. With `roll_over` it may start between `-batch_size` and 0: then the first `-cursor` rows of
the batch are the rows carried over from the last epoch (`_carried`). Shuffling reorders the rows
once per epoch with NumPy's global generator, so that every batch is a view of neighbouring rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint
from gnomon.ground.arguments import Whole
from gnomon.io.dataset import Dataset, is_dataset
from gnomon.io.desc import DataBatch, DataDesc
from gnomon.io.iterator import DataIter

LAST_BATCH = ("pad", "discard", "roll_over")
Named = list[tuple[str, Any]]


class NDArrayIter(DataIter):
    """Batches of `batch_size` rows from NDArrays or NumPy arrays, or lists or dicts of them.

    h5py data sets are read batch by batch, never as a whole: batches are float32.

    `last_batch_handle` says what happens to rows that do not fill a batch: `pad` fills it up from
    the start (and `batch.pad` tells by how many rows), `discard` drops them, `roll_over` keeps
    them for the first batch of the next epoch. Labels are named `softmax_label` unless a dict
    says otherwise; several arrays in a list are named `_0_data`, `_1_data`.

    >>> import numpy as np
    >>> it = NDArrayIter(np.zeros((5, 2)), np.arange(5), batch_size=2)
    >>> [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in it]
    [([0.0, 1.0], 0), ([2.0, 3.0], 0), ([4.0, 0.0], 1)]
    """

    _fields: ClassVar = {"batch_size": Whole(1)}

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: Any = "data",
        label_name: Any = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        if last_batch_handle not in LAST_BATCH:
            got, expected = last_batch_handle, f"one of {LAST_BATCH}"
            raise ParamError(complaint("NDArrayIter", "last_batch_handle", expected, got))
        super().__init__(batch_size)
        self.data = _init_data(data, False, data_name)
        self.label = _init_data(label, True, label_name, "label")
        self.num_data = _common_rows(self.data + self.label)
        if last_batch_handle == "roll_over" and batch_size > self.num_data:
            expected = f"at most {self.num_data}, the rows, where the last batch rolls over"
            raise ParamError(complaint("NDArrayIter", "batch_size", expected, batch_size))
        self.num_source = len(self.data)
        self.idx = np.arange(self.num_data)
        self.shuffle = shuffle
        self.last_batch_handle = last_batch_handle
        self.layout = layout
        self.cursor = -batch_size
        self._carried: Named = []
        self.reset()

    @property
    def provide_data(self) -> list[DataDesc]:
        """Descriptions of the data arrays of a batch."""
        return self._described(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Descriptions of the label arrays of a batch."""
        return self._described(self.label)

    @property
    def data_list(self) -> list[Any]:
        """The arrays of the data, then those of the labels."""
        return [array for _, array in self.data + self.label]

    def _described(self, arrays: Named) -> list[DataDesc]:
        return [
            DataDesc(name, (self.batch_size, *array.shape[1:]), array.dtype, self.layout)
            for name, array in arrays
        ]

    def hard_reset(self) -> None:
        """Start anew and forget rows carried over from the last epoch."""
        self._shuffle()
        self.cursor = -self.batch_size
        self._carried = []

    def reset(self) -> None:
        """Start the next epoch: shuffle if asked, and put rows rolled over first."""
        rolls = self.last_batch_handle == "roll_over"
        left = self.num_data - self.cursor
        if not (rolls and 0 < left < self.batch_size):
            self.hard_reset()
            return
        tail = slice(self.cursor, self.num_data)
        self._carried = [(name, array[tail].copy()) for name, array in self.data + self.label]
        self._shuffle()
        self.cursor = -left - self.batch_size

    def _shuffle(self) -> None:
        if not self.shuffle:
            return
        np.random.shuffle(self.idx)
        self.data = [(name, _rows_in_order(array, self.idx)) for name, array in self.data]
        self.label = [(name, _rows_in_order(array, self.idx)) for name, array in self.label]

    def iter_next(self) -> bool:
        self.cursor += self.batch_size
        if self.last_batch_handle == "pad":
            return self.cursor < self.num_data
        return self.cursor + self.batch_size <= self.num_data

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), None)

    def getdata(self) -> list[Any]:
        return [self._batch(array, i) for i, (_, array) in enumerate(self.data)]

    def getlabel(self) -> list[Any]:
        start = len(self.data)
        return [self._batch(array, start + i) for i, (_, array) in enumerate(self.label)]

    def _batch(self, array: Any, position: int) -> Any:
        """Rows `cursor : cursor + batch_size`, joined with carried or wrapped-around rows."""
        begin, end = self.cursor, self.cursor + self.batch_size
        if begin >= 0 and end <= self.num_data:
            return array[begin:end]
        if begin < 0 and not self._carried:
            raise GnomonError("NDArrayIter: there is no batch before the first `next`")
        if begin < 0:
            return nd.concat(self._carried[position][1], array[0:end], dim=0)
        pieces = [array[begin : self.num_data]]
        rounds, rest = divmod(end - self.num_data, self.num_data)
        pieces += [array[0 : self.num_data] for _ in range(rounds)]
        if rest:
            pieces.append(array[0:rest])
        return nd.concat(*pieces, dim=0)

    def getpad(self) -> int:
        if self.last_batch_handle == "pad":
            return max(0, self.cursor + self.batch_size - self.num_data)
        return max(0, -self.cursor)


def _init_data(data: Any, allow_empty: bool, default_name: str, argument: str = "data") -> Named:
    """`data` as a list of (name, NDArray or Dataset); NumPy arrays become float32 NDArrays.

    Iterators of programs import it by this name.
    """
    if data is None:
        data = []
    if isinstance(data, (np.ndarray, nd.NDArray)) or is_dataset(data):
        data = [data]
    if isinstance(data, (list, tuple)):
        if not data and not allow_empty:
            raise ParamError(complaint("NDArrayIter", argument, "at least one array", data))
        one = len(data) == 1
        data = {default_name if one else f"_{i}_{default_name}": a for i, a in enumerate(data)}
    elif isinstance(data, Mapping):
        data = dict(sorted(data.items()))
    else:
        expected = "NDArray, numpy.ndarray, h5py.Dataset, or a list or dict of them"
        raise DTypeError(complaint("NDArrayIter", argument, expected, type(data).__name__))
    return [(name, _as_ndarray(argument, name, array)) for name, array in data.items()]


def _as_ndarray(argument: str, name: str, array: Any) -> Any:
    if isinstance(array, nd.NDArray):
        return array
    if is_dataset(array):
        return Dataset(array)
    try:
        return nd.array(array)
    except TypeError as error:
        where = f"{argument}[{name!r}]"
        kind = f" of dtype {array.dtype}" if hasattr(array, "dtype") else ""
        got = type(array).__name__ + kind
        raise DTypeError(complaint("NDArrayIter", where, "an array of numbers", got)) from error


def _rows_in_order(array: Any, order: np.ndarray) -> Any:
    if isinstance(array, Dataset):
        return array.reordered(order)
    return nd.array(array.asnumpy()[order], ctx=array.context, dtype=array.dtype)


def _common_rows(arrays: Named) -> int:
    first, base = arrays[0]
    for name, array in arrays:
        if not array.shape:
            raise ShapeError(complaint("NDArrayIter", name, "an array of rows", "a single number"))
        if array.shape[0] != base.shape[0]:
            expected = f"{base.shape[0]} rows as in {first!r}"
            raise ShapeError(complaint("NDArrayIter", name, expected, array.shape))
    if base.shape[0] == 0:
        raise ShapeError(complaint("NDArrayIter", first, "at least one row", base.shape))
    return int(base.shape[0])
