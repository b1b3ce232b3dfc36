"""An iterator of another one's batches with a chosen number of them per epoch."""

from __future__ import annotations

from numbers import Integral

from gnomon.base import check_kind, complaint, shown
from gnomon.io.iterator import DataIter, HandedOn


class ResizeIter(HandedOn):
    """Exactly `size` batches of `data_iter` per epoch, starting it anew whenever it ends.

    With `reset_internal=False` the next epoch goes on where the last one stopped.
    """

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        if not hasattr(data_iter, "batch_size"):
            got = shown(data_iter)
            raise TypeError(complaint("ResizeIter", "data_iter", "an iterator of batches", got))
        check_kind("ResizeIter", "size", size, Integral, "an int")
        super().__init__(data_iter.batch_size)
        self.data_iter = data_iter
        self.size = size
        self.reset_internal = reset_internal
        self.cur = 0
        self.provide_data = data_iter.provide_data
        self.provide_label = data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self.cur == self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True
