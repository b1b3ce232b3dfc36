"""Convolutions and means of windows on GPUs, by cuDNN: which there are, and their steps.

An algorithm is chosen once for a convolution of given sizes, by cuDNN's guess: the fastest that
gives the same bits each time and takes at most `WORKSPACE` bytes. Its descriptors are kept with it.
A step takes its workspace from the pool, as its temporaries, so work of several queues shares none.
Each queue has a handle of its own.

All operands lie one way: channels first, or channels last where the result does. Those that lie
otherwise are copied.

The largest elements of windows are left to expressions: which of several takes the gradient, and
what a window of minus infinity gives, NVIDIA does not say.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from gnomon import dtype as dtypes
from gnomon.dtype import DType
from gnomon.expr import call as nodes
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.expr.window import places, span
from gnomon.plan.cut import Invoke
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda.dnn import Convolve, Dnn, Mean, Sizes
from gnomon.runtime.devices.cuda.driver import Driver
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.devices.device import find
from gnomon.runtime.kernels.gpu_kernel import GpuStep, Span
from gnomon.runtime.libraries.calls import FACTORS, Copied
from gnomon.shape import channels_last, is_channels_last, prod

FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
#: the dtypes of each kind of call; cuDNN does not say that it pools bfloat16
KINDS: dict[type[Call], tuple[DType, ...]] = {
    nodes.Convolution: (*FLOATS, dtypes.bfloat16),
    nodes.ConvolutionData: (*FLOATS, dtypes.bfloat16),
    nodes.ConvolutionWeight: (*FLOATS, dtypes.bfloat16),
    nodes.AvgPool: FLOATS,
    nodes.AvgPoolGradient: FLOATS,
}
TENSOR_CORES = dtypes.float16, dtypes.bfloat16  # float32 is computed by FMA alone
LARGEST = 1 << 31  # elements that cuDNN does not reach: it counts them in 32 bits
WORKSPACE = 1 << 30  # bytes: what MXNet allows by default

_handles: weakref.WeakKeyDictionary[Queue, int] = weakref.WeakKeyDictionary()


def library_of(gpu: Gpu) -> Dnn:
    """cuDNN, where something is asked of it."""
    found = gpu.driver.dnn()
    assert found is not None, "without the library nothing comes here"
    return found


def handle_of(queue: Queue) -> int:
    """The handle of a queue, which gives its work to the queue's stream."""
    found = _handles.get(queue)
    if found is None:
        gpu = queue.gpu
        dnn = library_of(gpu)
        with gpu.lock:
            gpu.enter()
            found = _handles[queue] = dnn.create()
            weakref.finalize(queue, gpu.drop, dnn.destroy, found).atexit = False
            dnn.set_stream(found, queue.handle)
    return found


class Plan:
    """Work as it is done: its descriptors, which are kept as long; of a convolution the algorithm.

    It takes `nbytes` of workspace.
    """

    __slots__ = ("__weakref__", "algorithm", "described", "nbytes")

    def __init__(self, gpu: Gpu, described: int, algorithm: int = 0, nbytes: int = 0) -> None:
        self.described, self.algorithm, self.nbytes = described, algorithm, nbytes
        weakref.finalize(self, gpu.drop, library_of(gpu).forget, described).atexit = False


@functools.lru_cache(maxsize=1024)
def plan_of(gpu: Gpu, what: Convolve | Mean) -> Plan | None:
    """How a GPU does it; None for a convolution that cuDNN has no way for that is always the same
    and small enough."""
    dnn = library_of(gpu)
    with gpu.lock:
        gpu.enter()
        described = dnn.describe(what)
        if isinstance(what, Mean):
            return Plan(gpu, described)
        chosen = next(_algorithms(dnn, handle_of(gpu.default), described), None)
        if chosen is None:
            dnn.forget(described)
            return None
        return Plan(gpu, described, *chosen)


def _algorithms(dnn: Dnn, handle: int, described: int) -> Iterator[tuple[int, int]]:
    """The algorithms that are always the same and small enough, with their bytes of workspace."""
    for way in dnn.algorithms(handle, described):
        nbytes = dnn.workspace(handle, described, way.number) if way.deterministic else None
        if nbytes is not None and nbytes <= WORKSPACE:
            yield way.number, nbytes


def what_of(call: Any, last: bool = False) -> Convolve | Mean:
    """A node in cuDNN's words, on operands whose channels are `last` or first; windows along one
    axis go along a second one of size 1."""
    if isinstance(call, nodes.AvgPool):
        return mean(call, False, call.data.shape, call.shape, last)
    if isinstance(call, nodes.AvgPoolGradient):
        return mean(call, True, call.shape, call.grad.shape, last)
    if isinstance(call, nodes.Convolution):
        part, data, weight, out = "forward", call.data.shape, call.weight.shape, call.shape
    elif isinstance(call, nodes.ConvolutionData):
        part, data, weight, out = "data", call.shape, call.weight.shape, call.grad.shape
    else:
        part, data, weight, out = "weight", call.data.shape, call.shape, call.grad.shape
    how = call.how
    where = two(how.stride, 1), two(how.pad, 0), two(how.dilate, 1)
    shapes = flat(data), flat(weight), flat(out)
    return Convolve(part, call.dtype, *shapes, *where, how.groups, last)


def mean(call: Any, backward: bool, data: Sizes, out: Sizes, last: bool) -> Mean:
    """A pooling by means in cuDNN's words."""
    w = call.window
    where = two(w.kernel, 1), two(w.stride, 1), two(w.pad, 0)
    return Mean(backward, call.dtype, flat(data), flat(out), *where, call.counted, last)


def flat(shape: Sizes) -> Sizes:
    """A shape with at least two axes of space."""
    return (*shape[:2], *two(shape[2:], 1))


def two(sizes: Sizes, fill: int) -> Sizes:
    """A number for each of at least two axes of space."""
    return sizes if len(sizes) > 1 else (fill, *sizes)


def supported(call: Call, gpu: Gpu) -> bool:
    """Whether a call is a convolution or mean of floats, or a gradient of one, that cuDNN does."""
    if call.dtype not in KINDS.get(type(call), ()):
        return False
    sizes = [prod(e.shape) for e in (call, *call.children)]
    if 0 in sizes or max(sizes) >= LARGEST or gpu.driver.dnn() is None:
        return False
    what = what_of(call)
    reach = what.kernel if isinstance(what, Mean) else span(what.weight[2:], what.dilate)
    same = places(what.data[2:], reach, what.stride, what.pad) == what.out[2:]
    return same and plan_of(gpu, what) is not None


def fits(call: Call, dest: Buffer) -> bool:
    """Whether cuDNN stores straight into memory of the layout of `dest`: not where bringing what a
    call on buffers reads into that takes more than bringing the result there."""
    return dest.contiguous or (
        has_last(call, dest) and turned(call, dest, True) <= turned(call, dest, False)
    )


def has_last(call: Call, dest: Buffer) -> bool:
    """Whether the channels of `dest` are last, and cuDNN does a supported call so."""
    if call.dtype is dtypes.float64 or not lies(dest, True):
        return False
    gpu = find(dest.device)
    assert isinstance(gpu, Gpu)
    return plan_of(gpu, what_of(call, True)) is not None


def lies_last(call: Call, dest: Buffer) -> bool:
    """Whether a call on buffers has its channels last: as its result, and where that lies both
    ways, by what fewer elements are turned for."""
    if not dest.contiguous:
        return True
    return turned(call, dest, True) < turned(call, dest, False) and has_last(call, dest)


def turned(call: Call, dest: Buffer, last: bool) -> int:
    """The elements that must be turned so that all channels are `last`, or first."""
    buffers: list[Any] = [*call.children, dest]
    return sum(prod(x.shape) for x in buffers if not lies(x, last))


def lies(buffer: Buffer, last: bool) -> bool:
    """Whether a buffer lies without gaps, its channels `last` or first."""
    return is_channels_last(buffer.shape, buffer.strides) if last else buffer.contiguous


def prefers_last(dtype: DType, gpu: Gpu) -> bool:
    """Whether convolutions of pictures are faster with their channels last: by tensor cores, whose
    kernels read them so."""
    return dtype in TENSOR_CORES and gpu.driver.dnn() is not None


class Issue:
    """What cuDNN does in a step: its words are where operands, result and workspace lie."""

    __slots__ = ("factors", "plan")

    def __init__(self, plan: Plan, factors: tuple[float, float]) -> None:
        self.plan, self.factors = plan, factors


class ConvolveIssue(Issue):
    """A convolution."""

    __slots__ = ()

    def __call__(self, driver: Driver, words: Sequence[int], queue: Queue) -> None:
        plan, (a, b, out, *rest) = self.plan, words
        library_of(queue.gpu).convolve(
            handle_of(queue),
            plan.described,
            plan.algorithm,
            self.factors,
            (a, b, out),
            (rest[0] if rest else 0, plan.nbytes),
        )


class MeanIssue(Issue):
    """A pooling by means."""

    __slots__ = ()

    def __call__(self, driver: Driver, words: Sequence[int], queue: Queue) -> None:
        operand, out = words
        dnn, described = library_of(queue.gpu), self.plan.described
        dnn.pool(handle_of(queue), described, self.factors, (operand, out))


def steps(invoke: Invoke, queue: Queue, copied: Copied) -> list[GpuStep]:
    """The steps of a supported call; `copied` copies operands that have gaps."""
    call, out = invoke.call, invoke.dest
    last = lies_last(call, out)
    plan = plan_of(queue.gpu, what_of(call, last))
    assert plan is not None
    factor, beta = FACTORS[invoke.saver]
    before, operands = dense(call.children, last, copied)
    if isinstance(call, nodes.ConvolutionData):
        operands.reverse()  # the weight comes first
    buffers = [*operands, out]
    sizes = [prod(b.shape) * b.dtype.size for b in buffers]
    words = [b.address for b in buffers]
    keep: list[Any] = [buffers, [b.owner for b in buffers]]
    moved = sum(sizes)
    if plan.nbytes:
        workspace = pool.allocate(plan.nbytes, queue.gpu.name)
        words.append(workspace.address)
        sizes.append(plan.nbytes)
        keep.append(workspace)
    spans = [Span(k, 0, size, k >= len(operands)) for k, size in enumerate(sizes)]
    is_mean = isinstance(call, nodes.AvgPool | nodes.AvgPoolGradient)
    name, made = ("pooling", MeanIssue) if is_mean else ("convolution", ConvolveIssue)
    issue = made(plan, (factor * invoke.scale, beta))
    return [*before, GpuStep(issue, words, spans, queue, name, keep, moved)]


def dense(operands: Sequence[Any], last: bool, copied: Copied) -> tuple[list[Any], list[Buffer]]:
    """The operands without gaps, their channels `last` or first, and the steps that copy those that
    lie otherwise."""
    before: list[Any] = []
    found = []
    for operand in operands:
        buffer = operand
        if not lies(buffer, last):
            buffer, making = copied(by_pixels(operand) if last else operand)
            before.extend(making)
            if last:
                buffer = seen(buffer, operand.shape, channels_last(operand.shape))
        found.append(buffer)
    return before, found


def by_pixels(x: Buffer) -> Buffer:
    """A buffer (N, C, space...) seen as (N, space..., C)."""
    (n, c, *space), (a, b, *rest) = x.shape, x.strides
    return seen(x, (n, *space, c), (a, *rest, b))


def seen(x: Buffer, shape: Sizes, strides: Sizes) -> Buffer:
    """The memory of a buffer in another shape."""
    return Buffer(shape, x.dtype, strides, x.address, x, x.device)
