"""Convolutions and poolings by oneDNN: which cases it takes, and their steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gnomon import dtype as dt
from gnomon.base import GnomonError
from gnomon.expr import call as nodes
from gnomon.expr.call.conv import Geometry
from gnomon.expr.call.pool import Window
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.plan.statement import Store, Structure
from gnomon.runtime import dnn
from gnomon.runtime.cache import CACHE
from gnomon.runtime.program import Step
from gnomon.runtime.scratch import copied, temporary

Sizes = tuple[int, ...]
Make = Callable[[], dnn.DnnStep]


def geometry(data: Sizes, weight: Sizes, how: Geometry) -> dnn.Convolution:
    """A convolution in oneDNN's words."""
    return dnn.Convolution(data, weight, how.stride, how.dilate, how.pad, how.pad, how.groups)


def convolution_of(call: Call) -> tuple[dnn.Convolution, Make]:
    """Which convolution a node is, and how its step is made."""
    if isinstance(call, nodes.Convolution):
        which = geometry(call.data.shape, call.weight.shape, call.how)
        return which, lambda: dnn.convolution_forward(which)
    if isinstance(call, nodes.ConvolutionData):
        which = geometry(call.shape, call.weight.shape, call.how)
        return which, lambda: dnn.convolution_backward_data(which)
    assert isinstance(call, nodes.ConvolutionWeight)
    which = geometry(call.data.shape, call.shape, call.how)
    return which, lambda: dnn.convolution_backward_weight(which)


OPERANDS: dict[type[Call], tuple[str, ...]] = {
    nodes.Convolution: ("data", "weight"),
    nodes.ConvolutionData: ("grad", "weight"),
    nodes.ConvolutionWeight: ("data", "grad"),
    nodes.MaxPool: ("data",),
    nodes.MaxPoolGradient: ("data", "", "grad"),
    nodes.AvgPool: ("data",),
}


def pooling_of(call: Call) -> tuple[dnn.Pooling, Make]:
    """Which pooling a node is, and how its step is made; GnomonError where oneDNN means another."""
    assert isinstance(call, nodes.MaxPool | nodes.MaxPoolGradient | nodes.AvgPool)
    right = overhang(call.data.shape[2:], call.window)
    kind = "max"
    if isinstance(call, nodes.AvgPool):
        if call.counted and right != tuple(
            min(r, p) for r, p in zip(right, call.window.pad, strict=True)
        ):
            raise GnomonError("a mean does not count what hangs over the padding")
        kind = "avg_padded" if call.counted else "avg"
    if any(r >= k for r, k in zip(right, call.window.kernel, strict=True)):
        raise GnomonError("a window holds nothing but padding")
    w = call.window
    which = dnn.Pooling(kind, call.data.shape, w.kernel, w.stride, w.pad, right)
    if isinstance(call, nodes.MaxPoolGradient):
        return which, lambda: dnn.pooling_backward(which)
    return which, lambda: dnn.pooling_forward(which)


def overhang(space: Sizes, w: Window) -> Sizes:
    """Padding behind the data that the last windows reach, along each axis."""
    rows = zip(space, w.kernel, w.stride, w.pad, w.counts(space), strict=True)
    return tuple(max(0, (m - 1) * s + k - n - p) for n, k, s, p, m in rows)


@functools.lru_cache(maxsize=1024)
def possible(which: dnn.Convolution | dnn.Pooling, kind: type[Call]) -> bool:
    """Whether oneDNN makes the primitive."""
    try:
        if isinstance(which, dnn.Pooling):
            backward = kind is nodes.MaxPoolGradient
            (dnn.pooling_backward if backward else dnn.pooling_forward)(which)
        elif kind is nodes.Convolution:
            dnn.convolution_forward(which)
        elif kind is nodes.ConvolutionData:
            dnn.convolution_backward_data(which)
        else:
            dnn.convolution_backward_weight(which)
    except dnn.Refused:
        return False
    return True


def supported(call: Call) -> bool:
    """float32 data without empty axes, in a form that oneDNN has."""
    if call.dtype is not dt.float32 or not dnn.available():
        return False
    if any(0 in e.shape for e in (call, *call.children)):
        return False
    try:
        which, _ = described(call)
    except GnomonError:
        return False
    kind: Any = type(call)
    return possible(which, kind)


def described(call: Call) -> tuple[dnn.Convolution | dnn.Pooling, Make]:
    """Which work a node is, and how its step is made."""
    if isinstance(call, nodes.Convolution | nodes.ConvolutionData | nodes.ConvolutionWeight):
        return convolution_of(call)
    return pooling_of(call)


def steps(invoke: Invoke) -> list[Step]:
    """The work of a node, with copies of strided operands before and the saver's step after it."""
    call, before, addresses, keep = invoke.call, [], {}, []
    for name, operand in zip(OPERANDS[type(call)], call.children, strict=True):
        assert isinstance(operand, Buffer)
        if not name:
            continue
        if not operand.contiguous:
            operand, making = copied(operand)
            before.extend(making)
        addresses[name] = operand.address
        keep.append(operand)
    straight = invoke.saver == "saveto" and invoke.scale == 1.0
    out = invoke.dest if straight else temporary(call)
    step = described(call)[1]()
    step.bind(out=out.address, **addresses)
    step.keep = (step.keep, keep, out)
    after = [] if straight else [saved(invoke, out)]
    return [*before, step, *after]


def saved(invoke: Invoke, value: Buffer) -> Step:
    """The step that stores a finished value by the invocation's saver."""
    scaled = value if invoke.scale == 1.0 else value * invoke.scale
    stores = [Store(invoke.dest, invoke.saver, scaled)]  # type: ignore[arg-type]
    structure = Structure(stores)
    return CACHE.get(stores, structure).bind(structure, "store")
