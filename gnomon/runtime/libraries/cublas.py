"""Products of matrices on GPUs, by cuBLAS: which there are, and the steps that compute them.

A queue has a handle of its own, whose stream is the queue's and whose workspace comes from the
pool, so that products of several queues share no memory. It is made for the queue's first product.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from gnomon import dtype as dtypes
from gnomon.expr.call import Dot
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke, reach
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda.blas import Blas, Gemm
from gnomon.runtime.devices.cuda.driver import Driver
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.kernels.gpu_kernel import GpuStep, Span
from gnomon.runtime.libraries.calls import Copied, multiplied, rows_dense
from gnomon.runtime.libraries.product import Product

DTYPES = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
WORKSPACE = {"sm_90": 32 << 20}  # bytes: what NVIDIA recommends
LESS = 4 << 20  # for the others


class Handle:
    """A handle for one queue, with its stream and workspace."""

    def __init__(self, queue: Queue, blas: Blas) -> None:
        gpu, self.blas = queue.gpu, blas
        nbytes = WORKSPACE.get(gpu.properties.arch, LESS)
        self.workspace = pool.allocate(nbytes, gpu.name)
        span = self.workspace.address, self.workspace.address + nbytes

        def made(driver: object) -> None:
            self.number = blas.create()
            weakref.finalize(queue, gpu.drop, blas.destroy, self.number).atexit = False
            blas.set_stream(self.number, queue.handle)
            blas.set_workspace(self.number, self.workspace.address, nbytes)

        gpu.give(queue, (), [span], made)  # the queue comes after who had that memory before


_handles: weakref.WeakKeyDictionary[Queue, Handle] = weakref.WeakKeyDictionary()


def _handle_of(queue: Queue) -> Handle:
    found = _handles.get(queue)
    if found is None:
        blas = queue.gpu.driver.blas()
        assert blas is not None, "without the library no product comes here"
        found = _handles[queue] = Handle(queue, blas)
    return found


class GemmIssue:
    """A product as the work of a step: its words are where the matrices lie."""

    __slots__ = ("what",)

    def __init__(self, what: Gemm) -> None:
        self.what = what

    def __call__(self, driver: Driver, words: Sequence[int], queue: Queue) -> None:
        handle = _handle_of(queue)
        handle.blas.gemm(handle.number, self.what, *words)


def supported(call: Any, gpu: Gpu) -> bool:
    """Whether a call is a product of floats, not empty, and the library is installed."""
    return (
        isinstance(call, Dot)
        and call.dtype in DTYPES
        and 0 not in (*call.a.shape, *call.b.shape)
        and found(gpu)
    )


def found(gpu: Gpu) -> bool:
    """Whether the library is installed."""
    return gpu.driver.blas() is not None


def fits(call: Call, dest: Buffer) -> bool:
    """Whether cuBLAS stores straight into memory of the layout of `dest`."""
    return rows_dense(dest)


def steps(invoke: Invoke, queue: Queue, copied: Copied) -> list[GpuStep]:
    """The steps of a supported product; `copied` copies what cuBLAS cannot read."""
    what, a, b, before = multiplied(invoke, copied)
    return [*before, product_step(what, a, b, invoke.dest, queue)]


def product_step(what: Product, a: Buffer, b: Buffer, c: Buffer, queue: Queue) -> GpuStep:
    """The step of a product of matrices that lie by rows."""
    matrices = [b, a, c]  # by columns all are transposed, and B comes first
    spans = [_span(k, x, k == 2) for k, x in enumerate(matrices)]
    words = [x.address for x in matrices]
    keep = [matrices, [x.owner for x in matrices]]
    return GpuStep(GemmIssue(by_columns(what)), words, spans, queue, what.name, keep, what.bytes)


def _span(word: int, buffer: Buffer, writes: bool) -> Span:
    low, high = (end - buffer.address for end in reach(buffer))
    return Span(word, low, high, writes)


def by_columns(p: Product) -> Gemm:
    """A product of matrices that lie by rows, as the product of their transposes."""
    return Gemm(
        p.dtype, p.n, p.m, p.k, p.transpose_b, p.transpose_a, p.alpha, p.beta,
        p.ldb, p.lda, p.ldc, p.batch, p.sb, p.sa, p.sc,
    )  # fmt: skip
