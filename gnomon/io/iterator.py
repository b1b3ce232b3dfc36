"""The iterator protocol all data sources share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gnomon.ground.arguments import CheckedArguments
from gnomon.io.desc import DataBatch, DataDesc


class DataIter(CheckedArguments):
    """Base of data iterators: a subclass says `iter_next` and `getdata`, and the rest follows.

    An iterator describes its batches by `provide_data` and `provide_label`, gives them one by
    one, ends by StopIteration, and starts again after `reset()`. Reaching the end does not reset.
    """

    provide_data: Any = ()
    provide_label: Any = ()

    def __init__(self, batch_size: Any = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Go back to the first batch."""

    def next(self) -> DataBatch:
        """The next batch; StopIteration when there is none."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Move to the next batch and tell whether there is one."""
        return False

    def getdata(self) -> list[Any]:
        """Data arrays of the current batch."""
        return []

    def getlabel(self) -> list[Any]:
        """Label arrays of the current batch."""
        return []

    def getindex(self) -> Any:
        """Identities of the current batch's rows in the source, or None."""
        return None

    def getpad(self) -> int | None:
        """How many rows at the end of the current batch do not count."""
        return None


class HandedOn(DataIter):
    """Base of iterators that hand on whole batches of a source: `iter_next` sets `current_batch`.

    The source's own batch, not a rebuilt one: it may carry a bucket key and descriptions.
    """

    current_batch: DataBatch | None = None

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return self._batch()

    def _batch(self) -> DataBatch:
        if self.current_batch is None:
            raise StopIteration
        return self.current_batch

    def getdata(self) -> list[Any]:
        return self._batch().data or []

    def getlabel(self) -> list[Any]:
        return self._batch().label or []

    def getindex(self) -> Any:
        return self._batch().index

    def getpad(self) -> int | None:
        return self._batch().pad


def described(source: Any) -> tuple[list[DataDesc], list[DataDesc]]:
    """`provide_data` and `provide_label` of `source` as DataDesc lists (plain pairs allowed)."""
    return (
        [_desc(each) for each in source.provide_data],
        [_desc(each) for each in source.provide_label or ()],
    )


def _desc(item: Any) -> DataDesc:
    return item if isinstance(item, DataDesc) else DataDesc(*item)
