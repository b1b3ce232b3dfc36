"""Data sets: samples by number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence, Sized
from numbers import Integral
from pathlib import Path
from typing import Any

from gnomon import ndarray as nd
from gnomon.base import ParamError, ShapeError, check_functions, check_kind, complaint
from gnomon.ground.files import path_of
from gnomon.recordio import MXIndexedRecordIO

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]

Transform = Callable[[Any, Any], Any]


class Dataset:
    """Base of data sets: a subclass says `__getitem__` and `__len__`.

    A sample is one thing, or a tuple of several, like an image and its label.
    """

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(idx)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")

    def filter(self, fn: Callable[..., Any]) -> Dataset:
        """The samples for which `fn(sample)` is true."""
        check_functions("Dataset.filter", fn=fn)
        return _SampledDataset(self, [i for i in range(len(self)) if fn(self[i])])

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Part `index` of `num_shards` parts of nearly equal length.

        >>> [len(SimpleDataset(range(10)).shard(3, k)) for k in range(3)]
        [4, 3, 3]
        """
        check_kind("Dataset.shard", "num_shards", num_shards, Integral, "an int")
        check_kind("Dataset.shard", "index", index, Integral, "an int")
        if num_shards < 1 or not 0 <= index < num_shards:
            got = (num_shards, index)
            raise ParamError(complaint("Dataset.shard", "index", "0 to num_shards - 1", got))
        size, rest = divmod(len(self), num_shards)
        start = size * index + min(index, rest)
        return _SampledDataset(self, range(start, start + size + (index < rest)))

    def take(self, count: int | None) -> Dataset:
        """The first `count` samples; all for None."""
        check_kind("Dataset.take", "count", count, (Integral, type(None)), "an int or None")
        if count is not None and count < 0:
            raise ParamError(complaint("Dataset.take", "count", "at least 0, or None", count))
        return _SampledDataset(self, range(len(self) if count is None else min(count, len(self))))

    def sample(self, sampler: Iterable[int]) -> Dataset:
        """The samples that a sampler names, in its order."""
        return _SampledDataset(self, list(sampler))

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Each sample changed by `fn`, which gets the parts of a tuple as arguments.

        `lazy` changes a sample whenever it is asked for; else all are changed now.
        """
        check_functions("Dataset.transform", fn=fn)
        changed = _LazyTransformDataset(self, fn)
        return changed if lazy else SimpleDataset([changed[i] for i in range(len(self))])

    def transform_first(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """The first part of each sample changed by `fn`, like images but not their labels."""
        check_functions("Dataset.transform_first", fn=fn)
        return self.transform(_TransformFirstClosure(fn), lazy)


class _SampledDataset(Dataset):
    """Some samples of a data set."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self._dataset, self._indices = dataset, indices

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[self._indices[idx]]

    def __len__(self) -> int:
        return len(self._indices)


class _LazyTransformDataset(Dataset):
    """A data set whose samples a function changes."""

    def __init__(self, data: Dataset, fn: Callable[..., Any]) -> None:
        self._data, self._fn = data, fn

    def __getitem__(self, idx: int) -> Any:
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)

    def __len__(self) -> int:
        return len(self._data)


class _TransformFirstClosure:
    """A function of a sample that changes its first part; an object, so that it can be pickled."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def __call__(self, first: Any, *rest: Any) -> Any:
        return (self._fn(first), *rest) if rest else self._fn(first)


class SimpleDataset(Dataset):
    """The elements of a list, or of anything with a length and numbered elements."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]

    def __len__(self) -> int:
        return len(self._data)


class ArrayDataset(Dataset):
    """Arrays, lists or data sets of one length, side by side.

    >>> ArrayDataset([10, 20, 30], ["a", "b", "c"])[1]
    (20, 'b')

    Raises:
        ShapeError: their lengths differ.
    """

    def __init__(self, *args: Any) -> None:
        if not args:
            raise ParamError(complaint("ArrayDataset", "args", "at least one array", "none"))
        self._length = len(args[0]) if hasattr(args[0], "__len__") else 0
        for number, data in enumerate(args):
            check_kind("ArrayDataset", f"array {number}", data, Sized, "an array or a list")
            if len(data) != self._length:
                expected = f"{self._length} samples, as the first has"
                where = f"array {number}"
                raise ShapeError(complaint("ArrayDataset", where, expected, len(data)))
        self._data = [_numbers(data) for data in args]

    def __getitem__(self, idx: int) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length


def _numbers(data: Any) -> Any:
    """`data`; a row of numbers on the device as one in memory, whose elements are numbers."""
    return data.asnumpy() if isinstance(data, nd.NDArray) and data.ndim == 1 else data


class RecordFileDataset(Dataset):
    """The records of a RecordIO file as bytes; its index lies beside it, with the ending `.idx`."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self.filename = path_of("RecordFileDataset", filename)
        folder, slash, name = self.filename.rpartition("/")  # no `Path`: it may be memory://a.rec
        self.idx_file = f"{folder}{slash}{name.rpartition('.')[0] or name}.idx"
        self._record = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self) -> int:
        return len(self._record.keys)


class _DownloadedDataset(Dataset):
    """Data and labels that `_get_data` puts into `_data` and `_label`, all at once.

    The name is MXNet's, whose own fetches them; programs derive from it. `root` is the folder with
    the files. A sample is a pair, or what `transform(data, label)` makes of it.
    """

    def __init__(self, root: str | os.PathLike[str], transform: Transform | None) -> None:
        self._root = str(Path(root).expanduser())
        self._transform = transform
        self._data: Any = None
        self._label: Any = None
        self._get_data()

    def _get_data(self) -> None:
        """Hook: read the files in `self._root`."""
        raise NotImplementedError(f"{type(self).__name__} must define _get_data()")

    def __getitem__(self, idx: int) -> Any:
        pair = self._data[idx], self._label[idx]
        return pair if self._transform is None else self._transform(*pair)

    def __len__(self) -> int:
        return len(self._label)
