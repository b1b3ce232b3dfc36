"""How arrays of GPUs are made, computed and differentiated: what `core/elsewhere.py` asks for.

An operator that is an expression becomes statements, as those of `shadow`: kernels for the queue of
the device, which the engine orders by the arrays' variables. What takes values to know what to do,
or has no kernel there, runs on the processor with copies, and that is told once for each operator.
All operands of an operator lie on one device; `_copy` alone goes from one to another.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from gnomon.context import Context
from gnomon.dtype import int64
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.expr.walk import postorder
from gnomon.ndarray import derivative
from gnomon.ndarray.core import storage_types, tape
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.elsewhere import check_operands, waits
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import Node, record
from gnomon.ndarray.lazy import on_data
from gnomon.ndarray.lazy.batch import Batch
from gnomon.ndarray.lazy.invoke import compute, guarded, recipe_of
from gnomon.ndarray.lazy.numbers import Number, word
from gnomon.ndarray.lazy.recipe import Draws, Work, template_for
from gnomon.ndarray.remote.array import RemoteNDArray, around, imported, move, new, push, zeros
from gnomon.ndarray.remote.batches import GpuBatch
from gnomon.resource import Position, at, generator
from gnomon.runtime.devices.cuda.gpu import Gpu, synchronise
from gnomon.runtime.devices.pool import pool_of
from gnomon.runtime.kernels.gpu_template import GpuTemplate
from gnomon.runtime.statements import transfer
from gnomon.runtime.statements.gpu import unrolls

__all__ = ["apply", "around", "gradient", "imported", "move", "new", "zeros"]

Outputs = list[Any]

_HOST = Context("cpu", 0)
_told: set[str] = set()
_log = logging.getLogger("gnomon")


def applied(op: Any, inputs: Sequence[Any], given: Outputs | None, ctx: Context | None) -> Any:
    """The visible outputs where an operand lies on a GPU; None where none does."""
    operands = [*inputs, *(given or ())]
    if not any(isinstance(x, RemoteNDArray) for x in operands):
        return None
    return apply(op, inputs, given, ctx or operands[0].context)


storage_types.rules.append(applied)
waits.append(synchronise)


def apply(
    op: Any,
    inputs: Sequence[Any],
    given: Outputs | None,
    ctx: Context,
    drawn: Sequence[Position] | None = None,
) -> Outputs:
    """The visible outputs of an operator on `ctx`; they go to `given`, where that is not None.

    Raises:
        DeviceError: its operands lie on several devices.
        ShapeError, DTypeError: the operator does not take such operands.
    """
    tapes = mode.recording and any(x._tape is not None for x in inputs)
    if op.name == "_copy":
        dest = Array._new(_dense(inputs[0]), ctx) if given is None else given[0]
        if dest.context != inputs[0].context:
            return [_crossed(inputs[0], dest, tapes)]
    check_operands(op, inputs, given or (), ctx)
    outputs, context = _outputs(op, inputs, given, ctx, drawn)
    if tapes:
        record(op, inputs, outputs, mode.training, context)
    return outputs[: op.num_visible_outputs]


def _dense(array: Any) -> Layout:
    """The layout of an array's elements without gaps."""
    return dense(array._layout.shape, array._layout.dtype)


def _crossed(given: Any, dest: Any, tapes: bool) -> Any:
    """An array copied to another device; its gradient comes back the same way."""
    move(given, dest)
    if tapes:
        tape.record_copy(given, dest)
    return dest


def _outputs(
    op: Any,
    inputs: Sequence[Any],
    given: Outputs | None,
    ctx: Context,
    drawn: Sequence[Position] | None,
) -> tuple[Outputs, Any]:
    """All outputs of an operator, and the context that its gradient is to be given."""
    if not op.has_expression:
        return _on_host(op, inputs, given, ctx)
    recipe, sharing = recipe_of(op, inputs, given, _on(ctx))
    if recipe.template is None:
        return _on_host(op, inputs, given, ctx, drawn)
    layouts, changed = recipe.given
    outputs = list(given or ())
    outputs += [new(layout, ctx) for layout in layouts[len(outputs) :]]
    written = [*outputs, *[inputs[k] for k in changed]]
    _launch(recipe, op.name, inputs, outputs, written, ctx, sharing.values, drawn)
    if op.guard is not None:
        guarded(op, [x.shape for x in inputs], inputs[1], outputs[0])
    return outputs, None


class Recipe(NamedTuple):
    """A work ready to be given to a GPU: see `ndarray/lazy/recipe.py`.

    `template` is None where the processor has to do it.
    """

    template: GpuTemplate | None
    draws: list[int]
    numbers: list[Number]
    given: Any


class _There:
    """A GPU as one that recipes are made for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def recipe_for(self, work: Work, given: Any = None) -> Recipe:
        """A recipe that does a work; NotShared as for the processor."""
        values = work.express(work.leaves(), Draws(lambda: Buffer((2,), int64)))
        nodes = postorder([v for v in values if v is not None])
        if any(isinstance(node, Call) and unrolls(node, self.name) for node in nodes):
            return Recipe(None, [], [], given)
        return Recipe(*template_for(work, self._template), given)

    def _template(self, make: Any, count: int, numbers: Any) -> GpuTemplate:
        return GpuTemplate(partial(make, device=self.name), count, numbers, self.name)


_there: WeakKeyDictionary[Any, _There] = WeakKeyDictionary()


def _on(ctx: Context) -> _There:
    """The GPU of a context: a new driver has new ones."""
    gpu = pool_of(ctx).device
    found = _there.get(gpu)
    return found or _there.setdefault(gpu, _There(gpu.name))


def _launch(
    recipe: Recipe,
    name: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    written: Sequence[Any],
    ctx: Context,
    numbers: Sequence[float] = (),
    drawn: Sequence[Position] | None = None,
) -> None:
    """Have the engine give a recipe's steps on these operands to the GPU."""
    assert recipe.template is not None
    addresses = [x._start for x in (*inputs, *outputs)]
    states: list[Buffer] = []
    if recipe.draws:
        if drawn is None:
            drawn = [generator(ctx).reserve(count) for count in recipe.draws]
        states = [transfer.sent(at(position), str(ctx)) for position in drawn]
        addresses += [state.address for state in states]
    if recipe.numbers:
        addresses += [word(numbers[n.place], n) for n in recipe.numbers]
    steps = recipe.template.bound(addresses, states)
    push(name, [step.run for step in steps], inputs, written, ctx)


def run(batch: Batch, arrays: Sequence[Any], written: Sequence[int], first: int, keep: Any) -> None:
    """Run the statements of a `Batch` on arrays, and on numbers from the address `first` on here,
    in memory that `keep` owns."""
    ctx = arrays[0].context
    gpu = pool_of(ctx).device
    made = batch.elsewhere.get(gpu)
    if made is None:
        assert isinstance(gpu, Gpu)
        made = batch.elsewhere[gpu] = GpuBatch(batch, gpu)
    work = made.work([x._start for x in arrays], first, keep)
    push(batch.name, work, arrays, [arrays[k] for k in written], ctx)


# --- on the processor -----------------------------------------------------------------------------


def here(array: Any) -> Any:
    """A copy of an array in memory of the processor, off the tape."""
    return None if array is None else Array._around(array.asnumpy(), _HOST)


def tell(name: str, ctx: Context) -> None:
    """Say, once for each operator, that it runs on the processor."""
    if name not in _told:
        _told.add(name)
        _log.warning("%s: runs on the processor, with copies: it has no kernel on %s", name, ctx)


def _on_host(
    op: Any,
    inputs: Sequence[Any],
    given: Outputs | None,
    ctx: Context,
    drawn: Sequence[Position] | None = None,
) -> tuple[Outputs, Any]:
    """All outputs of an operator by the processor, and the context of its gradient."""
    tell(op.name, ctx)
    held = [here(x) for x in inputs]
    if op.is_expression:
        found, context = compute(op, held, None, _HOST, drawn), None
    else:
        found, context = on_data.run(op, held, None, _HOST, mode.training)
    outputs = list(given or ())
    outputs += [new(_dense(x), ctx) for x in found[len(outputs) :]]
    count = len(op.arguments())
    for value, dest in zip([*found, *held[count:]], [*outputs, *inputs[count:]], strict=True):
        move(value, dest)
    return outputs, context


# --- gradients ------------------------------------------------------------------------------------


def gradient(
    node: Node, reads: Sequence[Any], wanted: tuple[int, ...], dests: Sequence[Any]
) -> Outputs:
    """The gradients of the arguments of a recorded operator; they go to `dests`, where there are.

    Raises:
        DeviceError: what they are computed from is elsewhere.
    """
    rule, ctx = node.gradient, node.outputs[0][1]
    if rule.op.has_expression:
        recipe, inputs, outputs = derivative.recipe_of(node, reads, wanted, dests, _on(ctx))
        if recipe.template is not None:
            check_operands(rule, inputs, outputs, ctx)
            written = [*outputs, *derivative.changed_of(node, inputs)]
            _launch(recipe, rule.name, inputs, outputs, written, ctx)
            return derivative.spaced(node, wanted, outputs)
    kinds = [dense(rule.shapes[0][k], rule.types[0][k]) for k in wanted]
    outputs = [new(layout, ctx) for layout in kinds]
    for k, value, dest in zip(wanted, _gradient_on_host(node, reads, wanted), outputs, strict=True):
        move(value, dest)
        if dests[k] is not None:
            derivative.store(dest, *dests[k])
    return derivative.spaced(node, wanted, outputs)


def _gradient_on_host(node: Node, reads: Sequence[Any], wanted: tuple[int, ...]) -> Outputs:
    """The wanted gradients by the processor."""
    tell(node.gradient.name, node.outputs[0][1])
    saved = node.saved or ()
    held = [here(x) for x in saved]
    kinds = [(layout, _HOST) for layout, _ in node.outputs]
    twin = Node(node.gradient, node.inputs, node.flow, held, kinds, node.context)
    found = derivative.by_processor(twin, [here(x) for x in reads], wanted)
    pairs = [derivative.changed_of(node, part) for part in (held, saved)]
    for value, state in zip(*pairs, strict=True):
        move(value, state)
    return [found[k] for k in wanted]
