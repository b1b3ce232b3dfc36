"""`_MultiWorkerIter`: batches from a `multiprocessing.Pool`, which libraries build loaders on."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import TimeoutError as LateError
from multiprocessing.pool import Pool
from typing import Any

from gnomon.base import GnomonError
from gnomon.context import cpu_pinned
from gnomon.gluon.data.shared import as_in_context


class _MultiWorkerIter:
    """The batches of a sampler, each made by a call of `worker_fn` in a pool, in their order.

    Args:
        worker_pool: the processes, whose initializer gave them the data set; or threads.
        batchify_fn: makes a batch of a list of samples; `worker_fn` gets it.
        batch_sampler: gives lists of numbers.
        pin_memory, pin_device_id: put batches into memory that GPUs read directly.
        worker_fn: `worker_fn(numbers, batchify_fn, dataset)` gives the batch, pickled where
            `dataset` is None.
        prefetch: calls that are made ahead.
        dataset: what threads read.
        data_loader: kept as long as this is.
        timeout: seconds after which a batch that is not ready is an error.

    Raises:
        GnomonError: a batch was not made in time.
    """

    def __init__(
        self,
        worker_pool: Pool,
        batchify_fn: Callable[..., Any],
        batch_sampler: Iterable[Any],
        pin_memory: bool = False,
        pin_device_id: int = 0,
        worker_fn: Callable[..., Any] | None = None,
        prefetch: int = 0,
        dataset: Any = None,
        data_loader: Any = None,
        timeout: float = 120,
    ) -> None:
        self._worker_pool, self._batchify_fn = worker_pool, batchify_fn
        self._batch_sampler, self._iter = batch_sampler, iter(batch_sampler)
        self._worker_fn: Any = worker_fn
        self._pin_memory, self._pin_device_id = pin_memory, pin_device_id
        self._dataset, self._data_loader, self._timeout = dataset, data_loader, timeout
        self._data_buffer: dict[int, Any] = {}  # what was asked for, by number
        self._sent_idx = self._rcvd_idx = 0
        for _ in range(prefetch):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return self

    def _push_next(self) -> None:
        """Ask for one more batch, if there is one; subclasses ask in their own way."""
        numbers = next(self._iter, None)
        if numbers is not None:
            given = numbers, self._batchify_fn, self._dataset
            asked = self._worker_pool.apply_async(self._worker_fn, given)
            self._data_buffer[self._sent_idx] = asked
            self._sent_idx += 1

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        number = self._rcvd_idx
        self._rcvd_idx += 1  # also past a batch that cannot be made
        try:
            found = self._data_buffer.pop(number).get(self._timeout)
        except LateError:
            text = f"batch {number} was not made in {self._timeout:g} s"
            raise GnomonError(f"DataLoader: {text}: is the data set stuck?") from None
        batch = pickle.loads(found) if self._dataset is None else found
        return as_in_context(batch, cpu_pinned(self._pin_device_id)) if self._pin_memory else batch

    next = __next__
