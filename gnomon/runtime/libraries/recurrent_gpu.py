"""Recurrent layers on GPUs: products by cuBLAS, and a kernel for the cell of each step in time.

These are the steps of the processor, with work of another kind. cuDNN's layers do not fit: what
they keep for the gradient only they can read, and they go backwards in time only beside a layer
that goes forwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon.dtype import DType
from gnomon.expr.call import Recurrence, RecurrenceGradient
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.kernels.gpu_kernel import CACHE, GpuStep
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.libraries import cublas, recurrent
from gnomon.runtime.libraries.calls import Copied
from gnomon.runtime.libraries.product import Product
from gnomon.runtime.libraries.recurrent_work import Work


class GpuWork(Work):
    """Work of a queue."""

    def __init__(self, dtype: DType, queue: Queue, copied: Copied) -> None:
        super().__init__(dtype)
        self.queue, self._copied = queue, copied

    def fresh(self) -> Work:
        return GpuWork(self.dtype, self.queue, self._copied)

    def temporary(self, shape: Sequence[int]) -> Buffer:
        return temporary(Buffer(shape, self.dtype), self.queue.gpu.name)

    def copied(self, buffer: Buffer) -> tuple[Buffer, list[GpuStep]]:
        return self._copied(buffer)

    def kernel(self, stores: Sequence[Store], name: str) -> None:
        structure = Structure(stores)
        self.steps.append(CACHE.get(stores, structure).bind(structure, name, self.queue))

    def multiply(self, what: Product, a: Buffer, b: Buffer, c: Buffer) -> None:
        self.steps.append(cublas.product_step(what, a, b, c, self.queue))


def supported(call: Call, gpu: Gpu) -> bool:
    """Whether a call is a recurrence, or the gradient of one, whose products cuBLAS does."""
    if not isinstance(call, Recurrence | RecurrenceGradient):
        return False
    filled = not any(0 in e.shape for e in call.children)
    return filled and call.dtype in cublas.DTYPES and call.dtype.size > 2 and cublas.found(gpu)


def fits(call: Call, dest: Buffer) -> bool:
    """Whether it is stored straight into memory of the layout of `dest`."""
    return dest.contiguous


def steps(invoke: Invoke, queue: Queue, copied: Copied) -> list[GpuStep]:
    """The steps of a supported recurrence."""
    return recurrent.steps_of(GpuWork(invoke.call.dtype, queue, copied), invoke)
