"""Convolutions and poolings by oneDNN: which cases it takes, and their steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gnomon import dtype as dt
from gnomon.base import GnomonError, ShapeError
from gnomon.expr import call as nodes
from gnomon.expr.call.conv import Geometry
from gnomon.expr.call.pool import Window
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer, Expr
from gnomon.plan.cut import Invoke
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.kernels.scratch import copied, temporary
from gnomon.runtime.libraries import dnn
from gnomon.shape import channels_last, is_channels_last

Sizes = tuple[int, ...]
Layouts = dict[str, dnn.Layout]
Make = Callable[[Layouts], dnn.DnnStep]


def geometry(data: Sizes, weight: Sizes, how: Geometry) -> dnn.Convolution:
    """A convolution in oneDNN's words."""
    return dnn.Convolution(data, weight, how.stride, how.dilate, how.pad, how.pad, how.groups)


def convolution_of(call: Call) -> tuple[dnn.Convolution, Make]:
    """Which convolution a node is, and how its step is made."""
    if isinstance(call, nodes.Convolution):
        which = geometry(call.data.shape, call.weight.shape, call.how)
        return which, lambda layouts: dnn.convolution_forward(which, layouts=layouts)
    if isinstance(call, nodes.BiasedConvolution):
        which = geometry(call.data.shape, call.weight.shape, call.how)
        return which, lambda layouts: dnn.convolution_forward(which, bias=True, layouts=layouts)
    if isinstance(call, nodes.ConvolutionData):
        which = geometry(call.shape, call.weight.shape, call.how)
        return which, lambda layouts: dnn.convolution_backward_data(which, layouts=layouts)
    assert isinstance(call, nodes.ConvolutionWeight)
    which = geometry(call.data.shape, call.shape, call.how)
    return which, lambda layouts: dnn.convolution_backward_weight(which, layouts=layouts)


OPERANDS: dict[type[Call], tuple[str, ...]] = {
    nodes.Convolution: ("data", "weight"),
    nodes.BiasedConvolution: ("data", "weight", "bias"),
    nodes.ConvolutionData: ("grad", "weight"),
    nodes.ConvolutionWeight: ("data", "grad"),
    nodes.MaxPool: ("data",),
    nodes.MaxPoolGradient: ("data", "", "grad"),
    nodes.AvgPool: ("data",),
    nodes.AvgPoolGradient: ("grad",),
}
SLOW = "ref"  # how the names of oneDNN's plainest implementations begin
POOLINGS = nodes.MaxPool | nodes.MaxPoolGradient | nodes.AvgPool | nodes.AvgPoolGradient
FORWARD = nodes.Convolution | nodes.BiasedConvolution
BACKWARD = nodes.MaxPoolGradient | nodes.AvgPoolGradient


def pooling_of(call: Call) -> tuple[dnn.Pooling, Make]:
    """Which pooling a node is, and how its step is made; GnomonError where oneDNN means another."""
    assert isinstance(call, POOLINGS)
    w = call.window
    data = call.shape if isinstance(call, BACKWARD) else call.data.shape
    right = overhang(data[2:], w)
    kind = "max"
    if isinstance(call, nodes.AvgPool | nodes.AvgPoolGradient):
        inside = tuple(min(r, p) for r, p in zip(right, w.pad, strict=True))
        if call.counted and right != inside:
            raise GnomonError("a mean does not count what hangs over the padding")
        kind = "avg_padded" if call.counted else "avg"
    if any(r >= k for r, k in zip(right, w.kernel, strict=True)):
        raise GnomonError("a window holds nothing but padding")
    which = dnn.Pooling(kind, data, w.kernel, w.stride, w.pad, right)
    if isinstance(call, BACKWARD):
        return which, lambda layouts: dnn.pooling_backward(which, layouts=layouts)
    return which, lambda layouts: dnn.pooling_forward(which, layouts=layouts)


def overhang(space: Sizes, w: Window) -> Sizes:
    """Padding behind the data that the last windows reach, along each axis."""
    rows = zip(space, w.kernel, w.stride, w.pad, w.counts(space), strict=True)
    return tuple(max(0, (m - 1) * s + k - n - p) for n, k, s, p, m in rows)


@functools.lru_cache(maxsize=1024)
def possible(which: dnn.Convolution | dnn.Pooling, kind: type[Call]) -> bool:
    """Whether oneDNN has the primitive."""
    try:
        if isinstance(which, dnn.Pooling):
            (dnn.backward_pool if issubclass(kind, BACKWARD) else dnn.forward_pool)(which)
        elif issubclass(kind, FORWARD):
            dnn.forward_primitive(which, bias=issubclass(kind, nodes.BiasedConvolution))
        elif kind is nodes.ConvolutionData:
            dnn.data_primitive(which)
        else:
            dnn.weight_primitive(which)
    except dnn.Unsupported:
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
    return possible(which.of(1), kind)  # how many images there are decides nothing


def described(call: Call) -> tuple[dnn.Convolution | dnn.Pooling, Make]:
    """Which work a node is, and how its step is made."""
    if isinstance(call, FORWARD | nodes.ConvolutionData | nodes.ConvolutionWeight):
        return convolution_of(call)
    return pooling_of(call)


def steps(invoke: Invoke) -> list[Step]:
    """The work of a node, with copies of strided operands before and the saver's step after it.

    Operands whose channels are last in memory are taken as they are where oneDNN does. For a
    gradient that is to lie so, operands that do not are copied, for they are smaller than it.
    """
    call = invoke.call
    straight = invoke.saver == "saveto" and invoke.scale == 1.0
    operands = {n: c for n, c in zip(OPERANDS[type(call)], call.children, strict=True) if n}
    out = invoke.dest if straight else temporary(call)
    before: list[Step] = []
    placed, found = operands, direct_step(call, operands, out)
    if found is None and isinstance(call, BACKWARD) and is_channels_last(out.shape, out.strides):
        before, placed = turned(operands)
        found = direct_step(call, placed, out)
    if found is None:
        before, operands = dense(operands)
        last = None if out.contiguous else out
        out = out if last is None else temporary(call)
        made = [*before, *bound(described(call)[1]({}), operands, out)]
        if last is not None:
            return [*made, stored(Store(last, "saveto", out))]
    else:
        made = [*before, *bound(found, placed, out)]
    return made if straight else [*made, saved(invoke, out)]


def direct_step(call: Call, operands: dict[str, Any], out: Buffer) -> dnn.DnnStep | None:
    """The step on these operands as they lie; None where oneDNN cannot take them so."""
    pictures = {n: b for n, b in (*operands.items(), ("out", out)) if n != "bias"}
    layouts = {name: layout_of(b) for name, b in pictures.items()}
    if any(x is not None and x is not dnn.PLAIN for x in layouts.values()):
        # what lies both ways, for lack of channels or of space, lies as the others do
        layouts |= {
            n: dnn.last(b.shape) for n, b in pictures.items() if n != weight_of(call) and both(b)
        }
    if None in layouts.values():
        return None
    if isinstance(call, nodes.MaxPoolGradient) and layouts.pop("data") != layouts["out"]:
        return None  # the largest elements are found again in data that lie as their gradient
    given = {name: x for name, x in layouts.items() if x is not None and x is not dnn.PLAIN}
    try:
        made = described(call)[1](given)
    except (dnn.Unsupported, ShapeError):
        return None
    return None if given and made.implementation.startswith(SLOW) else made


def layout_of(buffer: Buffer) -> dnn.Layout | None:
    """How a buffer lies: plain, or with its channels last; None where it lies otherwise."""
    if buffer.contiguous:
        return dnn.PLAIN
    return dnn.last(buffer.shape) if is_channels_last(buffer.shape, buffer.strides) else None


def both(buffer: Buffer) -> bool:
    """Whether a buffer is plain and has its channels last as well."""
    return buffer.contiguous and is_channels_last(buffer.shape, buffer.strides)


def weight_of(call: Call) -> str:
    """Which operand of a call is a weight."""
    return "out" if isinstance(call, nodes.ConvolutionWeight) else "weight"


def fits(dest: Buffer) -> bool:
    """Whether oneDNN may store straight into memory of this layout."""
    return layout_of(dest) is not None


def dense(operands: dict[str, Any]) -> tuple[list[Step], dict[str, Any]]:
    """The operands without gaps, and the steps that copy those that had some."""
    before, found = [], {}
    for name, operand in operands.items():
        found[name] = operand
        if not operand.contiguous:
            found[name], making = copied(operand)
            before.extend(making)
    return before, found


def turned(operands: dict[str, Any]) -> tuple[list[Step], dict[str, Any]]:
    """The operands with their channels last, and the steps that copy those that lie otherwise."""
    before, found = [], {}
    for name, operand in operands.items():
        found[name] = operand
        if not is_channels_last(operand.shape, operand.strides):
            held, strides = temporary(operand), channels_last(operand.shape)
            copy = Buffer(operand.shape, operand.dtype, strides, held.address, held.owner)
            found[name] = copy
            before.append(stored(Store(copy, "saveto", operand)))
    return before, found


def bound(step: dnn.DnnStep, operands: dict[str, Any], out: Buffer) -> list[Step]:
    """`step` on its operands."""
    step.bind(out=out.address, **{name: b.address for name, b in operands.items()})
    step.keep = (step.keep, list(operands.values()), out)
    return [step]


def stored(store: Store) -> Step:
    """The step of a statement that needs nothing else."""
    structure = Structure([store])
    return CACHE.get([store], structure).bind(structure, "store")


def saved(invoke: Invoke, value: Expr) -> Step:
    """The step that stores a value by the invocation's saver."""
    scaled = value if invoke.scale == 1.0 else value * invoke.scale
    return stored(Store(invoke.dest, invoke.saver, scaled))
