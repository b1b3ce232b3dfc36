"""Copies between the memories of devices: dense on both sides, else by way of a dense temporary.

From one GPU to another they go straight where that one reaches the memory, else by the processor.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gnomon.expr.node import Buffer
from gnomon.plan.cut import reach
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda import peer
from gnomon.runtime.kernels import stages
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.statements.gpu import queue_of
from gnomon.runtime.statements.prepare import check, prepare

Array: TypeAlias = "np.ndarray[Any, Any]"


def fetched(buffer: Buffer) -> Array:
    """The data of a GPU's buffer as a new array of NumPy's that cannot be written to."""
    found = np.empty(buffer.shape, buffer.dtype.numpy)
    there = dense(buffer)
    _to_host(there, found.ctypes.data)
    found.flags.writeable = False
    return found


def transfer(dest: Buffer, source: Buffer) -> None:
    """Stores what one device's memory holds into another's.

    It returns when the source may be written to again; that of a GPU by statements.

    Raises:
        ShapeError, DTypeError: they do not fit; nothing has been written.
    """
    stand_in = Buffer(source.shape, source.dtype, None, device=dest.device)
    check(Store(dest, "saveto", stand_in))
    if 0 in dest.shape:
        return
    there = dense(source)
    here = dest if dest.contiguous else temporary(dest, dest.device)
    if here.device == "cpu":
        _to_host(there, here.address)
    elif there.device == "cpu":
        _to_gpu(here, there.address)
    elif not peer.copied(queue_of(here), here.address, queue_of(there), *reach(there)):
        held = temporary(there)
        _to_host(there, held.address)
        _to_gpu(here, held.address)
    if here is not dest:
        stages.run(prepare([Store(dest, "saveto", here)], "copy"))


def sent(buffer: Buffer, device: str) -> Buffer:
    """A dense buffer's elements in the memory of a device."""
    made = temporary(buffer, device)
    transfer(made, buffer)
    return made


def dense(buffer: Buffer) -> Buffer:
    """A buffer's elements without gaps, on the same device."""
    if buffer.contiguous:
        return buffer
    made = temporary(buffer, buffer.device)
    stages.run(prepare([Store(made, "saveto", buffer)], "copy"))
    return made


def _to_host(source: Buffer, address: int) -> None:
    """Copies a dense buffer of a GPU to an address of the processor's memory."""
    low, high = reach(source)
    if low < high:
        queue = queue_of(source)
        queue.gpu.copy_on(queue, address, low, high - low)
        queue.wait()


def _to_gpu(dest: Buffer, address: int) -> None:
    """Copies from an address of the processor's memory to a dense buffer of a GPU."""
    low, high = reach(dest)
    queue = queue_of(dest)
    queue.gpu.copy_on(queue, low, address, high - low)
