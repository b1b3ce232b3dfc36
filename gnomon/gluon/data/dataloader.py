"""`DataLoader`: batches of a data set, made here, by threads, or by other processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from gnomon.base import GnomonError, ParamError, complaint, shown
from gnomon.context import cpu_pinned
from gnomon.gluon.data.batches import default_batchify_fn, default_mp_batchify_fn
from gnomon.gluon.data.pool_iter import _MultiWorkerIter
from gnomon.gluon.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from gnomon.gluon.data.shared import as_in_context, unpack
from gnomon.gluon.data.workers import Pool, Task
from gnomon.ground.arguments import CheckedArguments
from gnomon.io.ahead import Ahead, Future

__all__ = [
    "DataLoader",
    "DataLoaderV1",
    "ForkingPickler",
    "_MultiWorkerIter",
    "_as_in_context",
    "default_batchify_fn",
    "default_mp_batchify_fn",
]

_as_in_context = as_in_context  # by the name that libraries import


class DataLoader(CheckedArguments):
    """Batches of a data set, once through it whenever it is iterated over.

    Args:
        dataset: gives samples by number.
        batch_size, shuffle, sampler, last_batch: which samples make a batch, as for
            `BatchSampler`; `shuffle` is a `RandomSampler`.
        batch_sampler: gives lists of numbers, in place of those four.
        batchify_fn: makes a batch of a list of samples.
        num_workers: processes, or with `thread_pool` threads, that make batches; 0: none.
        pin_memory, pin_device_id: put batches into memory that GPUs read directly.
        prefetch: batches that are made ahead; twice the number of workers by default.
        thread_pool: threads in place of processes.
        timeout: seconds after which a batch that is not ready is an error.
        auto_reload: begin the next epoch as soon as one ends.

    Random numbers of `random`, `numpy.random` and `mx.random` in a process belong to the batch:
    they are the same whichever process makes it, and follow from `numpy.random.seed`.

    >>> from gnomon.gluon.data import ArrayDataset
    >>> loader = DataLoader(ArrayDataset(np.arange(5), np.arange(5) ** 2), batch_size=2)
    >>> [(x.asnumpy().tolist(), y.asnumpy().tolist()) for x, y in loader]
    [([0, 1], [0, 1]), ([2, 3], [4, 9]), ([4], [16])]

    Raises:
        ParamError: arguments that contradict each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        batchify_fn: Callable[[Sequence[Any]], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int | None = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ) -> None:
        if timeout <= 0:
            raise ParamError(complaint("DataLoader", "timeout", "above 0", timeout))
        self._dataset, self._batchify_fn = dataset, batchify_fn
        self._batch_sampler: Any = batch_sampler
        given = {"batch_size": batch_size, "shuffle": shuffle, "sampler": sampler,
                 "last_batch": last_batch}  # fmt: skip
        if batch_sampler is None:
            self._batch_sampler = self._made_sampler(batch_size, shuffle, sampler, last_batch)
        else:
            for name, value in given.items():
                if value:
                    expected = "nothing beside batch_sampler"
                    raise ParamError(complaint("DataLoader", name, expected, value))
        self._num_workers = max(num_workers, 0)
        self._pin_memory, self._pin_device_id = pin_memory, pin_device_id
        ahead = 2 * self._num_workers if prefetch is None else prefetch
        self._prefetch = max(ahead, 1)
        self._thread_pool, self._timeout, self.auto_reload = thread_pool, timeout, auto_reload
        self._worker_pool: Pool | None = None
        self._iter: Iterator[Any] | None = None
        if auto_reload:
            self.refresh()

    def _made_sampler(
        self, batch_size: int | None, shuffle: bool, sampler: Any, last_batch: str | None
    ) -> BatchSampler:
        if batch_size is None:
            raise ParamError(complaint("DataLoader", "batch_size", "a number", None))
        if sampler is not None and shuffle:
            raise ParamError(complaint("DataLoader", "shuffle", "False with a sampler", True))
        if sampler is None:
            kind = RandomSampler if shuffle else SequentialSampler
            if not hasattr(self._dataset, "__len__"):
                expected = "a Dataset, or a sequence of samples"
                got = shown(self._dataset)
                raise TypeError(complaint("DataLoader", "dataset", expected, got))
            sampler = kind(len(self._dataset))
        return BatchSampler(sampler, batch_size, last_batch or "keep")

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        found, self._iter = self._iter, None
        found = self._epoch() if found is None else found
        batches: Any = iter(found)
        pinned = cpu_pinned(self._pin_device_id) if self._pin_memory else None
        with closing(batches):  # workers end with a loop that is left, not when memory is collected
            for batch in batches:
                yield batch if pinned is None else as_in_context(batch, pinned)
        if self.auto_reload:
            self.refresh()

    def refresh(self) -> None:
        """Begin an epoch now, so that its first batches are ready when it is iterated over."""
        self._iter = self._epoch()
        if isinstance(self._iter, _Ahead):
            self._iter.fill()

    def clean(self) -> None:
        """Forget an epoch that was begun by `refresh`, and end the workers."""
        self._iter = None
        if self._worker_pool is not None:
            self._worker_pool.close()
        self._worker_pool = None

    def _epoch(self) -> Iterator[Any]:
        samples = iter(self._batch_sampler)
        if not self._num_workers:
            batchify = self._batchify_fn or default_batchify_fn
            return (batchify([self._dataset[i] for i in batch]) for batch in samples)
        if self._thread_pool:
            return self._by_threads(samples)
        pool, self._worker_pool = self._worker_pool, None
        if pool is None or not pool.is_open:
            pool = Pool(
                self._dataset, self._batchify_fn or default_mp_batchify_fn, self._num_workers
            )
        return _Ahead(self, pool, samples)

    def _by_threads(self, samples: Iterator[Sequence[int]]) -> Iterator[Any]:
        batchify = self._batchify_fn or default_batchify_fn

        def make(batch: Sequence[int]) -> Any:
            return batchify([self._dataset[i] for i in batch])

        threads = Ahead(self._num_workers)
        begun: deque[tuple[int, Future[Any]]] = deque()
        for number, batch in enumerate(samples):
            begun.append((number, threads.begin(Future(partial(make, batch)))))
            if len(begun) > self._prefetch:
                yield self._awaited(*begun.popleft())
        for number, future in begun:
            yield self._awaited(number, future)

    def _awaited(self, number: int, future: Future[Any]) -> Any:
        if not future.wait(self._timeout):
            text = f"batch {number} was not made in {self._timeout:g} s"
            raise GnomonError(f"DataLoader: {text}: is the data set stuck?")
        try:
            return future.result()
        except Exception as error:
            error.add_note(f"DataLoader: raised by a thread at batch {number}")
            raise


DataLoaderV1 = DataLoader  # MXNet's first loader: what it can do, in the same words


class _Ahead:
    """An epoch by worker processes: some batches ahead, given in their order."""

    def __init__(self, loader: DataLoader, pool: Pool, samples: Iterator[Sequence[int]]) -> None:
        self._loader, self._pool, self._samples = loader, pool, samples
        self._seed = int(np.random.randint(1 << 31))
        self._asked = self._given = 0
        self._ready: dict[int, Any] = {}
        self._is_over = False

    def fill(self) -> None:
        """Ask for batches ahead."""
        while not self._is_over and self._asked - self._given < self._loader._prefetch:
            batch = next(self._samples, None)
            if batch is None:
                self._is_over = True
                return
            seed = (self._seed + self._asked) % (1 << 32)
            self._pool.ask(Task(self._asked, list(batch), seed))
            self._asked += 1

    def __iter__(self) -> Iterator[Any]:
        done = False
        try:
            self.fill()
            while self._given < self._asked:
                yield self._one()
            done = True
        finally:
            if done and self._loader._worker_pool is None:
                self._loader._worker_pool = self._pool  # for the next epoch
            else:
                self._pool.close()

    def _one(self) -> Any:
        """The next batch in order."""
        while self._given not in self._ready:
            number, batch = self._pool.receive(self._given, self._loader._timeout)
            self._ready[number] = batch
        found = self._ready.pop(self._given)
        if isinstance(found, BaseException):
            raise found
        self._given += 1
        self.fill()  # first: a worker may be waiting
        return unpack(found)
