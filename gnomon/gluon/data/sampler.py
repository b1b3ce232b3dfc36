"""Samplers: in which order samples come, and how they make batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from numbers import Integral
from typing import Any

import numpy as np

from gnomon.base import ParamError, check_kind, complaint, shown
from gnomon.ground.arguments import CheckedArguments

__all__ = ["BatchSampler", "FilterSampler", "RandomSampler", "Sampler", "SequentialSampler"]

LAST_BATCH = ("keep", "discard", "rollover")


class Sampler(CheckedArguments):
    """Base of samplers: a subclass says `__iter__` and `__len__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")


class SequentialSampler(Sampler):
    """`length` numbers from `start` on."""

    def __init__(self, length: int, start: int = 0) -> None:
        check_kind("SequentialSampler", "length", length, Integral, "an int")
        check_kind("SequentialSampler", "start", start, Integral, "an int")
        self._length, self._start = length, start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """The numbers below `length` in an order that NumPy's global generator draws."""

    def __init__(self, length: int) -> None:
        check_kind("RandomSampler", "length", length, Integral, "an int")
        self._length = length

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self._length)
        np.random.shuffle(order)
        return iter(order.tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """The numbers of the samples of `dataset` for which `fn(sample)` is true."""

    def __init__(self, fn: Callable[[Any], Any], dataset: Any) -> None:
        check_kind("FilterSampler", "dataset", dataset, Sized, "a data set")
        self._numbers = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class BatchSampler(Sampler):
    """Lists of `batch_size` of a sampler's numbers.

    `last_batch` says what happens to numbers that do not fill a list: "keep" gives them, "discard"
    drops them, "rollover" keeps them for the beginning of the next epoch.

    >>> sampler = BatchSampler(SequentialSampler(5), 2, "rollover")
    >>> list(sampler), list(sampler)
    ([[0, 1], [2, 3]], [[4, 0], [1, 2], [3, 4]])
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, last_batch: str = "keep") -> None:
        if last_batch not in LAST_BATCH:
            got = shown(last_batch)
            raise ParamError(complaint("BatchSampler", "last_batch", f"one of {LAST_BATCH}", got))
        whole = isinstance(batch_size, Integral)
        if not (whole or (isinstance(batch_size, float) and batch_size.is_integer())):
            got = shown(batch_size)
            raise ParamError(complaint("BatchSampler", "batch_size", "a whole number", got))
        if batch_size < 1:
            raise ParamError(complaint("BatchSampler", "batch_size", "1 or more", batch_size))
        batch_size = int(batch_size)
        self._sampler, self._batch_size, self._last_batch = sampler, batch_size, last_batch
        self._prev: list[int] = []

    def __iter__(self) -> Iterator[list[int]]:
        batch, self._prev = self._prev, []
        for number in self._sampler:
            batch.append(number)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._prev = batch

    def __len__(self) -> int:
        count = len(self._sampler)  # type: ignore[arg-type]
        if self._last_batch == "keep":
            return (count + self._batch_size - 1) // self._batch_size
        return (count + len(self._prev)) // self._batch_size
