"""RemoteNDArray: an array whose elements lie in a device's own memory.

It is of a class of its own so that code for memory of the processor, which knows arrays by their
class or by an address, leaves it alone: to ask for its `_address` is an error. Work on it goes to
the device's queue in the order that the engine finds: a function is done for the engine when the
queue has it, and reading the elements waits for the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon import engine
from gnomon.base import DeviceError
from gnomon.compatibility.conversion import convertible
from gnomon.context import Context
from gnomon.expr.node import Buffer
from gnomon.ground.record import put
from gnomon.ndarray.api.indexing import positions, taking
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.chunk import Chunk, allocate, cleared
from gnomon.ndarray.core.layout import Layout, dense, strided
from gnomon.ndarray.ndarray import NDArray
from gnomon.ndarray.rows import store_rows
from gnomon.runtime.devices import pool
from gnomon.runtime.statements import transfer
from gnomon.shadow import foreign
from gnomon.shape import prod


class RemoteNDArray(NDArray):
    """An array on a GPU; `nd.array(..., ctx=mx.gpu(0))` and its like make it."""

    __slots__ = ()

    shown_as = "NDArray"

    @property
    def _address(self) -> int:
        """Nothing here may read the memory."""
        what = f"an array of shape {self.shape} on {self.context}"
        raise DeviceError(f"{what}: this is not done there yet, expected an array on cpu(0)")

    @staticmethod
    def _at(chunk: Chunk, layout: Layout, offset: int = 0) -> Any:
        return at(chunk, layout, offset)

    def _buffer(self) -> Buffer:
        layout, chunk = self._layout, self._chunk
        place = pool.pool_of(chunk.ctx).device.name
        return Buffer(layout.shape, layout.dtype, layout.strides, self._start, chunk, place)

    def wait_to_read(self) -> None:
        """Sleep until every write pushed so far is done.

        Raises:
            EngineError: a function that the elements depend on failed.
            DeviceError: the device failed.
        """
        engine.get().wait_for_var(self._chunk)
        pool.pool_of(self._chunk.ctx).device.synchronise()

    def _numpy(self) -> np.ndarray[Any, Any]:
        """A copy of the memory that cannot be written to, without waiting for the engine."""
        return transfer.fetched(self._buffer())

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array of its own; one element converts to a number.

        Raises:
            EngineError: a function that the elements depend on failed.
            DeviceError: the device failed.
        """
        engine.get().wait_for_var(self._chunk)
        values = self._numpy()
        values.flags.writeable = True  # it is ours alone
        return convertible(values)

    def _write(self, values: np.ndarray[Any, Any]) -> None:
        held = np.empty(self.shape, self._dtype.numpy)
        np.copyto(held, values, casting="unsafe")
        move(Array._around(held, _HOST), self)

    def _scatter(self, key: Any, value: Any) -> None:
        """Write at picked places by a kernel: all that this process finds out is where they are."""
        layout, rows, dest = self._layout, self._rows(key), self
        if rows is None:  # single elements, of all the memory between the first and the last
            rows, low, end = positions(layout.shape, key), *layout.reach()
            if layout.strides is not None:
                at_each = np.unravel_index(rows, layout.shape)
                rows = np.tensordot(layout.strides, at_each, 1) - low // layout.dtype.size
            whole = dense(((end - low) // layout.dtype.size,), layout.dtype)
            dest = at(self._chunk, whole, self._offset + low)
        values = new(dense((*rows.shape, *dest.shape[1:]), layout.dtype), self.context)
        if not values.size:  # what does not fit is refused all the same
            here = value.asnumpy() if isinstance(value, Array) else value
            values._stretched(values._values(here))
            return
        values._assign(value)
        values, rows = values.reshape((-1, *dest.shape[1:])), rows.reshape(-1)
        if not (rows[1:] > rows[:-1]).all():  # the last one that is written to a place stays there
            kept, last = np.unique(rows[::-1], return_index=True)
            values = taking()((values, Array._around(len(rows) - 1 - last, self.context)))
            rows = kept
        store_rows([_numeric(dest)], Array._around(rows, self.context), [_numeric(values)])

    # --- as others see it -----------------------------------------------------------------------

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory for another library, in the order of the stream that it names."""
        return foreign.interface(self._shared())

    def __dlpack__(self, **kwargs: Any) -> Any:
        """The memory for another library, without a copy, for work on its `stream`."""
        return foreign.capsule(self._shared(), kwargs.get("stream"))

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device as DLPack numbers it."""
        return foreign.device_of(self._buffer())

    def to_dlpack_for_read(self) -> Any:
        """A DLPack capsule to read from, once all writes are done."""
        return self.__dlpack__()

    to_dlpack_for_write = to_dlpack_for_read

    def _shared(self) -> Buffer:
        """The array as a leaf that another library may work with from now on."""
        put(self._chunk, "shared", True)
        engine.get().wait_for_var(self._chunk, write=True)
        return self._buffer()


_HOST = Context("cpu", 0)


def _numeric(array: Any) -> Any:
    """An array, truth values as the bytes that they are: what scatters take."""
    layout = array._layout
    if layout.dtype is not dtypes.bool_:
        return array
    return at(array._chunk, strided(layout.shape, layout.steps(), dtypes.uint8), array._offset)


def at(chunk: Chunk, layout: Layout, offset: int = 0) -> Any:
    """An array that looks at memory of `chunk`."""
    made = object.__new__(RemoteNDArray)
    put(made, "_chunk", chunk)
    put(made, "_offset", offset)
    put(made, "_layout", layout)
    put(made, "_tape", None)
    put(made, "_pending_in", None)
    return made


def new(layout: Layout, ctx: Context) -> Any:
    """An array with memory of its own and any contents; `layout` is dense."""
    return at(allocate(layout.nbytes, ctx), layout)


def zeros(layout: Layout, ctx: Context) -> Any:
    """An array of zeros."""
    return at(cleared(layout.nbytes, ctx), layout)


def around(values: np.ndarray[Any, Any], ctx: Context) -> Any:
    """An array with the elements of a NumPy array, which may change as soon as this returns."""
    made = new(dense(values.shape, dtypes.of(values.dtype)), ctx)
    move(Array._around(np.require(values, requirements="C"), _HOST), made)
    return made


def imported(source: Any) -> Any:
    """An array on memory of a GPU that another library offers; None where it offers none."""
    found = foreign.found(source)
    if found is None:
        return None
    kind, _, number = found.device.partition("(")
    ctx = Context(kind, int(number.rstrip(")")))
    chunk = Chunk(found.address, ctx, found, prod(found.shape) * found.dtype.size, shared=True)
    return at(chunk, strided(found.shape, found.strides, found.dtype))


class Work:
    """Steps for a queue: what the engine calls; called again, it goes on where it was."""

    resumable = True

    def __init__(self, steps: Iterable[Callable[[], object]]) -> None:
        self.left = deque(steps)

    def __call__(self, run_ctx: Any) -> None:
        while self.left:
            self.left[0]()
            self.left.popleft()


def push(
    name: str,
    steps: Iterable[Callable[[], object]],
    read: Sequence[Any],
    written: Sequence[Any],
    ctx: Context,
) -> None:
    """Have the engine run steps, which read and write these arrays."""
    mutate = dict.fromkeys([x._chunk for x in written])
    const = dict.fromkeys([x._chunk for x in read if x._chunk not in mutate])
    for chunk in mutate:
        if chunk.pending_readers:
            chunk.push_pending_readers()
    engine.get().push_inline(Work(steps), ctx, tuple(const), tuple(mutate), name=name)


def move(source: Any, dest: Any) -> None:
    """Copy the elements of an array to one of its shape and dtype, on whichever device."""
    step = _bytes(source, dest)
    if step is None:
        ends = dest._buffer(), source._buffer()
        step = partial(transfer.transfer, *ends)
    push("copy", [step], [source], [dest], dest.context)


def _bytes(source: Any, dest: Any) -> Callable[[], object] | None:
    """What copies an array to a GPU byte by byte; None where that is not enough."""
    layout, nbytes = dest._layout, dest._layout.nbytes
    alike = layout is source._layout and layout.strides is None and nbytes
    here = source.__class__ is Array.main
    there = dest.__class__ is RemoteNDArray and (here or source.context == dest.context)
    chunk = source._chunk  # first: what is pending on it is computed
    if not (alike and there) or chunk is dest._chunk:
        return None
    begin = source._start
    copy = pool.pool_of(dest._chunk.ctx).device.copy
    return partial(_copied, copy, dest._start, begin, nbytes, (chunk, dest._chunk))


def _copied(copy: Callable[..., object], dest: int, source: int, nbytes: int, keep: Any) -> None:
    copy(dest, source, nbytes)
