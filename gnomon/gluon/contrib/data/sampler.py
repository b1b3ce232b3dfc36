"""Samplers that step through the data at intervals."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ParamError, complaint
from gnomon.gluon.data.sampler import Sampler

__all__ = ["IntervalSampler"]


class IntervalSampler(Sampler):
    """Every `interval`-th number below `length`; with `rollover` again from each other start.

    >>> list(IntervalSampler(7, 3)), list(IntervalSampler(7, 3, rollover=False))
    ([0, 3, 6, 1, 4, 2, 5], [0, 3, 6])
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        if not 1 <= interval <= length:
            expected = f"from 1 to {length}, the length"
            raise ParamError(complaint("IntervalSampler", "interval", expected, interval))
        self._length, self._interval, self._rollover = length, interval, rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else -(-self._length // self._interval)
