"""Rows put in order on GPUs, by kernels of our own: no library of the driver's sorts."""

from __future__ import annotations

from functools import partial

from gnomon.expr.call.order import Order
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.plan.gpu.sorting import in_order
from gnomon.plan.statement import Structure
from gnomon.plan.view import views
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.kernels.gpu_kernel import CACHE, GpuStep
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.libraries.calls import Copied


def supported(call: Call, gpu: Gpu) -> bool:
    """Whether a call puts rows in order."""
    return isinstance(call, Order)


def fits(call: Call, dest: Buffer) -> bool:
    """Whether it is stored straight into memory of the layout of `dest`: any."""
    return True


def steps(invoke: Invoke, queue: Queue, copied: Copied) -> list[GpuStep]:
    """The steps of a supported call."""
    call = invoke.call
    assert isinstance(call, Order)
    if 0 in call.shape:
        return []
    there = partial(temporary, device=queue.gpu.name)
    found = []
    for store in in_order(call, invoke.dest, invoke.saver, invoke.scale, there):
        stores = views([store])
        structure = Structure(stores)
        found.append(CACHE.get(stores, structure).bind(structure, "sort", queue))
    return found
