"""Statements on GPUs: kernels on the queue of the destination.

No library of a GPU is called yet: products and convolutions are computed by their fallback
expressions.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from gnomon.base import DeviceError
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.plan.signature import Signature
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.devices import device as devices
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.kernels.gpu_kernel import CACHE, GpuKernel, GpuStep
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.statements.backend import Backend


class NoLibraries:
    """What no library does."""

    def supported(self, call: Call) -> bool:
        """Nothing is."""
        return False

    def fits(self, call: Call, dest: Buffer) -> bool:
        """Nothing does."""
        return False

    def steps(self, invoke: Invoke) -> list[Any]:
        """Never asked for."""
        raise DeviceError(f"{invoke.call!r}: no library of GPUs is called yet")


class OnQueue(NamedTuple):
    """A kernel whose steps are given to a queue."""

    kernel: GpuKernel
    queue: Queue

    @property
    def signature(self) -> Signature:
        """What it must be called with."""
        return self.kernel.signature

    def bind(self, structure: Structure, name: str = "kernel", in_order: bool = False) -> GpuStep:
        """A step on the leaves of `structure`."""
        assert not in_order, "the threads of a GPU have no order"
        return self.kernel.bind(structure, name, self.queue)


def gpu_of(buffer: Buffer) -> Gpu:
    """The GPU that has a buffer's memory."""
    found = devices.find(buffer.device)
    if not isinstance(found, Gpu):
        raise DeviceError(f"{buffer!r} on {buffer.device}: expected memory of a GPU")
    return found


def queue_of(buffer: Buffer) -> Queue:
    """The queue that a buffer's statements go to: its stream's, or its GPU's own."""
    stream = getattr(buffer, "stream_", None)
    gpu = gpu_of(buffer)
    if stream is None or stream.queue is None:
        return gpu.default
    queue: Queue = stream.queue
    if queue.gpu is not gpu:
        raise DeviceError(
            f"{buffer!r} on {gpu.name}: its stream_ is one of {queue.gpu.name}; a stream orders "
            "the work of its own device"
        )
    return queue


def backend(dest: Buffer) -> Backend:
    """What carries out statements that store into the memory of a GPU."""
    queue = queue_of(dest)

    def kernel(stores: Sequence[Store], structure: Structure) -> OnQueue:
        return OnQueue(CACHE.get(stores, structure), queue)

    place = functools.partial(temporary, device=dest.device)
    return Backend(NoLibraries(), place, kernel, False)
