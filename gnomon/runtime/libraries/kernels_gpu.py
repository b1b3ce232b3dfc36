"""Calls that are kernels of our own on GPUs: rows put in order, and winners of windows.

No library of the driver's sorts. Winners are found once a window, as on the processor: within the
kernel of a gradient each element would look for those of all windows that hold it.
"""

from __future__ import annotations

from functools import partial

from gnomon.expr.call.order import Order
from gnomon.expr.call.pool import Winner
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.plan.gpu.sorting import in_order
from gnomon.plan.statement import Store, Structure
from gnomon.plan.view import views
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.kernels.gpu_kernel import CACHE, GpuStep
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.libraries.calls import Copied

NAMES: dict[type[Call], str] = {Order: "sort", Winner: "winner"}  # of the steps


def supported(call: Call, gpu: Gpu) -> bool:
    """Whether a call puts rows in order or finds winners."""
    return type(call) in NAMES


def fits(call: Call, dest: Buffer) -> bool:
    """Whether it is stored straight into memory of the layout of `dest`: any."""
    return True


def steps(invoke: Invoke, queue: Queue, copied: Copied) -> list[GpuStep]:
    """The steps of a supported call."""
    if 0 in invoke.call.shape:
        return []
    found = []
    for store in _stores(invoke, queue):
        stores = views([store])
        structure = Structure(stores)
        name = NAMES[type(invoke.call)]
        found.append(CACHE.get(stores, structure).bind(structure, name, queue))
    return found


def _stores(invoke: Invoke, queue: Queue) -> list[Store]:
    """The statements that do it in turn."""
    call, dest, saver, scale = invoke.call, invoke.dest, invoke.saver, invoke.scale
    if isinstance(call, Order):
        there = partial(temporary, device=queue.gpu.name)
        return list(in_order(call, dest, saver, scale, there))
    assert isinstance(call, Winner)
    value = call.fallback()
    return [Store(dest, saver, value if scale == 1.0 else value * scale)]
