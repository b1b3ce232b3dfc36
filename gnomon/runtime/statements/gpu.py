"""Statements on GPUs: kernels, and NVIDIA's libraries, on the queue of the destination.

cuBLAS multiplies, for recurrent layers too, and cuDNN convolves. Other calls are computed by their
fallback expressions, these as well where the library is not installed or does not do them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from gnomon.base import DeviceError
from gnomon.dtype import DType
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.plan.signature import Signature
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.devices import device as devices
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.kernels.gpu_kernel import CACHE, GpuKernel, GpuStep
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.libraries import cublas, cudnn, kernels_gpu, recurrent_gpu
from gnomon.runtime.statements.backend import Backend

LIBRARIES = cublas, cudnn, recurrent_gpu, kernels_gpu


class LibrariesOf(NamedTuple):
    """What NVIDIA's libraries do on a queue."""

    queue: Queue

    def _doing(self, call: Call) -> Any:
        """The module of the library that carries out `call`, or None."""
        gpu = self.queue.gpu
        return next((m for m in LIBRARIES if m.supported(call, gpu)), None)

    def supported(self, call: Call) -> bool:
        """Whether one carries out `call`."""
        return self._doing(call) is not None

    def fits(self, call: Call, dest: Buffer) -> bool:
        """Whether it stores straight into memory of the layout of `dest`."""
        return bool(self._doing(call).fits(call, dest))

    def steps(self, invoke: Invoke) -> list[GpuStep]:
        """The steps of a supported call."""
        found: list[GpuStep] = self._doing(invoke.call).steps(invoke, self.queue, self._copied)
        return found

    def prefers_last(self, dtype: DType) -> bool:
        """Whether convolutions of pictures are faster with their channels last."""
        return cudnn.prefers_last(dtype, self.queue.gpu)

    def _copied(self, buffer: Buffer) -> tuple[Buffer, list[GpuStep]]:
        """A dense buffer, and the step that copies `buffer` there."""
        copy = temporary(buffer, buffer.device)
        stores = [Store(copy, "saveto", buffer)]
        structure = Structure(stores)
        return copy, [CACHE.get(stores, structure).bind(structure, "copy", self.queue)]


def unrolls(call: Call, device: str) -> bool:
    """Whether a GPU would compute a call as an expression that grows with a size."""
    if not call.unrolls:
        return False
    gpu = devices.find(device)
    assert isinstance(gpu, Gpu)
    return not LibrariesOf(gpu.default).supported(call.widened())


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
    return Backend(LibrariesOf(queue), place, kernel, False)
