"""Products of matrices with what goes with them on GPUs, by cuBLASLt: one pass over the result.

An algorithm is chosen once for a product of given sizes and the alignment of its operands. Where
there is none it is a product by cuBLAS and a kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from gnomon.expr.call import Affine
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda.blas import Lt, Matmul
from gnomon.runtime.devices.cuda.driver import Driver
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.kernels.gpu_kernel import GpuStep
from gnomon.runtime.libraries import cublas
from gnomon.runtime.libraries.calls import Copied, multiplied
from gnomon.runtime.libraries.cublas import by_columns, fits, handle_of, product_step, span
from gnomon.runtime.libraries.kernels_gpu import kernel_step

__all__ = ["fits", "steps", "supported"]
MOST = 256  # bytes: more than this no algorithm asks of an address


def supported(call: Call, gpu: Gpu) -> bool:
    """Whether a call is such a product of floats, not empty, and the library is installed."""
    found = isinstance(call, Affine) and cublas.supported(call.product(), gpu)
    return found and gpu.driver.lt() is not None


@functools.lru_cache(maxsize=1024)
def plan_of(gpu: Gpu, what: Matmul, alignment: int) -> Any | None:
    """How a GPU does it, its operands lying at multiples of `alignment`; None: it has no way."""
    handle = handle_of(gpu.default)
    with gpu.lock:
        gpu.enter()
        return _library(gpu).plan(handle.number, what, alignment, handle.workspace.nbytes)


def _library(gpu: Gpu) -> Lt:
    found = gpu.driver.lt()
    assert found is not None, "without the library nothing comes here"
    return found


class MatmulIssue:
    """Such a product as the work of a step: its words are where matrices and row lie."""

    __slots__ = ("plans", "what")

    def __init__(self, what: Matmul) -> None:
        self.what = what
        self.plans: dict[int, Any] = {}  # by alignment

    def __call__(self, driver: Driver, words: Sequence[int], queue: Queue) -> None:
        a, b, c, row = words if self.what.biased else (*words, 0)
        every = a | b | c | row | MOST
        alignment = every & -every  # the largest power of two that divides all
        plan = self.plans.get(alignment)
        if plan is None:
            plan = self.plans[alignment] = plan_of(queue.gpu, self.what, alignment)
        handle = handle_of(queue)
        workspace = handle.workspace.address, handle.workspace.nbytes
        library = _library(queue.gpu)
        library.matmul(handle.number, plan, (a, b, c, row), workspace, queue.handle)


def steps(invoke: Invoke, queue: Queue, copied: Copied) -> list[GpuStep]:
    """The steps of a supported call; `copied` copies what the library cannot read."""
    call, dest = invoke.call, invoke.dest
    assert isinstance(call, Affine)
    product = Invoke(call.product(), dest, invoke.saver, invoke.scale)
    what, a, b, before = multiplied(product, copied)
    matmul = Matmul(by_columns(what), call.row is not None, call.relu)
    if plan_of(queue.gpu, matmul, what.dtype.size) is None:
        after = Store(dest, "saveto", call.after(dest))
        return [*before, product_step(what, a, b, dest, queue), kernel_step(after, "row", queue)]
    operands = [b, a, dest]  # by columns all are transposed, and B comes first
    if call.row is not None:
        row, making = _dense(call.row, copied)
        before = [*before, *making]
        operands.append(row)
    spans = [span(k, x, x is dest) for k, x in enumerate(operands)]
    words = [x.address for x in operands]
    keep = [operands, [x.owner for x in operands]]
    return [*before, GpuStep(MatmulIssue(matmul), words, spans, queue, "affine", keep, what.bytes)]


def _dense(row: Any, copied: Copied) -> tuple[Buffer, list[Any]]:
    """A row without gaps, and the steps that copy one that has some."""
    assert isinstance(row, Buffer)
    return (row, []) if row.contiguous else copied(row)
