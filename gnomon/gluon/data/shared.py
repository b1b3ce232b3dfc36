"""Batches from one process to another: arrays in shared memory, the rest pickled.

The sender writes all arrays of a batch into one file in memory; the receiver maps it and unlinks
it, so that the memory lives as long as an array of the batch.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gnomon import ndarray as nd
from gnomon.gluon.data.batches import as_ndarray

ALIGNED = 64
IN_MEMORY = Path("/dev/shm")


class Placed(NamedTuple):
    """An array in the file: where it begins, what it is, and whether it was an NDArray."""

    start: int
    shape: tuple[int, ...]
    dtype: str
    is_ndarray: bool


class Message(NamedTuple):
    """A batch with `Placed` for its arrays, and the file that holds them (None: there are none)."""

    batch: Any
    path: str | None


def folder() -> str:
    """A new folder for such files, in memory where there is a file system in memory."""
    return tempfile.mkdtemp(prefix="gnomon-data-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None)


def pack(batch: Any, where: str) -> Message:
    """`batch` with its arrays written into a file in the folder `where`."""
    arrays: list[np.ndarray] = []
    size = 0

    def placed(value: Any) -> Any:
        nonlocal size
        if isinstance(value, (nd.NDArray, np.ndarray)):
            array = value.asnumpy() if isinstance(value, nd.NDArray) else value
            if array.dtype.hasobject or not array.size:
                return value
            place = Placed(size, array.shape, array.dtype.str, isinstance(value, nd.NDArray))
            arrays.append(array)
            size += -(-array.nbytes // ALIGNED) * ALIGNED
            return place
        return mapped(placed, value)

    outline = placed(batch)
    if not size:
        return Message(batch, None)
    handle, path = tempfile.mkstemp(dir=where)
    try:
        # Written, not copied into a mapping: that would fault for every page.
        os.ftruncate(handle, size)
        start = 0
        for array in arrays:
            _write(handle, np.ascontiguousarray(array).reshape(-1).view(np.uint8), start)
            start += -(-array.nbytes // ALIGNED) * ALIGNED
    finally:
        os.close(handle)
    return Message(outline, path)


def _write(handle: int, data: np.ndarray, start: int) -> None:
    """Write bytes into a file from `start` on."""
    done = 0
    while done < data.size:
        done += os.pwrite(handle, data[done:], start + done)


def unpack(message: Message) -> Any:
    """The batch of a message; its file is gone afterwards."""
    if message.path is None:
        return message.batch
    with Path(message.path).open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    os.unlink(message.path)  # noqa: PTH108

    def found(value: Any) -> Any:
        if not isinstance(value, Placed):
            return mapped(found, value)
        count = int(np.prod(value.shape, dtype=np.int64))
        array = np.frombuffer(memory, value.dtype, count, value.start).reshape(value.shape)
        return as_ndarray(array) if value.is_ndarray else array

    return found(message.batch)


def mapped(fn: Any, value: Any) -> Any:
    """`fn` of what is in a list, tuple or dict; another value as it is."""
    if isinstance(value, dict):
        return {key: fn(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(fn, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(fn, value))
    return value


def as_in_context(batch: Any, ctx: Any) -> Any:
    """The batch with its arrays on `ctx`."""
    if isinstance(batch, nd.NDArray):
        return batch.as_in_context(ctx)
    return mapped(lambda each: as_in_context(each, ctx), batch)
