"""An iterator that fetches the next batch of one or several others while the current one is used.

States: each source is *fetching* (its future in `_pending` is not done), *ready* (done) or
*ended* (done with None). A source is only ever touched by its fetch or, with no fetch running, by
`reset`: a future is noted before it is begun, as Ctrl-C may come in between. An error in a source
is raised by the `next` that asks for its batch, and the iterator can be reset afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from gnomon.base import ArgumentError, GnomonError, ParamError, complaint, shown
from gnomon.io.ahead import Ahead, Future
from gnomon.io.desc import DataBatch, DataDesc
from gnomon.io.iterator import DataIter, HandedOn, described


class PrefetchingIter(HandedOn):
    """The batches of `iters`, joined into one, each fetched by a thread of its own in advance.

    `rename_data` and `rename_label` are one mapping old name -> new name per iterator.
    """

    def __init__(
        self,
        iters: DataIter | Sequence[DataIter],
        rename_data: Sequence[Mapping[str, str]] | None = None,
        rename_label: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        self.iters = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        if not self.iters:
            raise ParamError(complaint("PrefetchingIter", "iters", "at least one iterator", iters))
        for each in self.iters:
            if not hasattr(each, "provide_data"):
                got = shown(each)
                raise ArgumentError(complaint("PrefetchingIter", "iters", "iterators", got))
        self.rename_data = _renaming("rename_data", rename_data, len(self.iters))
        self.rename_label = _renaming("rename_label", rename_label, len(self.iters))
        super().__init__(self.provide_data[0].shape[0])
        self._pending: list[Future[DataBatch | None]] = []
        self._start_threads()
        self._fetch()

    @property
    def provide_data(self) -> list[DataDesc]:
        """Descriptions of the data of all iterators, renamed, in order."""
        descs = [described(each)[0] for each in self.iters]
        return _renamed(descs, self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Descriptions of the labels of all iterators, renamed, in order."""
        descs = [described(each)[1] for each in self.iters]
        return _renamed(descs, self.rename_label)

    def _start_threads(self) -> None:
        self._process = os.getpid()
        self._ahead = Ahead(len(self.iters))

    def _here(self) -> list[Future[DataBatch | None]]:
        """What is pending; a forked child has no threads, and fetches anew what was not there."""
        if self._process != os.getpid():
            self._start_threads()
            self._pending = [
                future if future.wait(0) else _fetch(source)
                for future, source in zip(self._pending, self.iters, strict=True)
            ]
        for future in self._pending:
            if not future.begun:
                self._ahead.begin(future)
        return self._pending

    def _fetch(self) -> None:
        self._pending = [_fetch(each) for each in self.iters]
        self._here()

    def reset(self) -> None:
        for future in self._here():
            future.wait()
        for each in self.iters:
            each.reset()
        self._fetch()

    def iter_next(self) -> bool:
        batches = [future.result() for future in self._here()]
        got = [batch for batch in batches if batch is not None]
        if not got:
            return False
        if len(got) < len(batches):
            ended = [i for i, batch in enumerate(batches) if batch is None]
            raise GnomonError(f"PrefetchingIter: iterators {ended} ended before the others")
        self.current_batch = _joined(got)
        self.current_batch.provide_data = self.provide_data
        self.current_batch.provide_label = self.provide_label
        self._fetch()
        return True


def _fetch(source: DataIter) -> Future[DataBatch | None]:
    return Future(partial(_next_or_none, source))


def _next_or_none(source: DataIter) -> DataBatch | None:
    try:
        return source.next()
    except StopIteration:
        return None


def _joined(batches: Sequence[DataBatch]) -> DataBatch:
    pads = {batch.pad or 0 for batch in batches}
    if len(pads) > 1:
        raise GnomonError(f"PrefetchingIter: the iterators' batches differ in padding: {pads}")
    return DataBatch(
        [array for batch in batches for array in batch.data or ()],
        [array for batch in batches for array in batch.label or ()],
        batches[0].pad,
        batches[0].index,
    )


def _renaming(
    argument: str, renames: Sequence[Mapping[str, str]] | None, count: int
) -> list[Mapping[str, str]]:
    if renames is None:
        return [{}] * count
    given = renames if isinstance(renames, (list, tuple)) else ()
    if len(given) != count or not all(isinstance(each, Mapping) for each in given):
        raise ParamError(
            complaint("PrefetchingIter", argument, f"{count} mappings, one per iterator", renames)
        )
    return list(renames)


def _renamed(
    descs: Sequence[Sequence[DataDesc]], renames: Sequence[Mapping[str, str]]
) -> list[DataDesc]:
    return [
        DataDesc(rename.get(desc.name, desc.name), desc.shape, desc.dtype, desc.layout)
        for each, rename in zip(descs, renames, strict=True)
        for desc in each
    ]
