"""Operators that work on data: their own code runs on one of the engine's workers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon import engine
from gnomon.base import Later, ShapeError, complaint
from gnomon.context import Context
from gnomon.dtype import DType
from gnomon.expr.functions.primitive import convert
from gnomon.expr.node import Buffer
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.core.layout import dense, strided
from gnomon.ops.host import HostOp
from gnomon.ops.infer import known, zero_is_unknown
from gnomon.ops.op import Op
from gnomon.ops.property import OpContext
from gnomon.ops.requests import kNullOp, kWriteTo
from gnomon.resource import request
from gnomon.shape import prod

if TYPE_CHECKING:
    from gnomon import shadow
else:
    shadow = Later("gnomon.shadow")

Outputs = list[Any]


def run(
    op: Any, inputs: Sequence[Any], given: Outputs | None, ctx: Context, train: bool
) -> tuple[Outputs, OpContext]:
    """All outputs of an operator, and the context that its gradient is to be given."""
    count = len(op.arguments())
    arguments, states = inputs[:count], inputs[count:]
    known_by_rules = type(op).infer_shape is Op.infer_shape
    infer = _by_rules if known_by_rules else _inferred
    kinds = tuple([x._dtype for x in arguments])
    shapes, types = infer(op, tuple([x.shape for x in arguments]), kinds, zero_is_unknown())
    context = OpContext(is_train=train)
    outputs = list(given or ())
    if isinstance(op, HostOp) and not all(map(known, shapes)):
        values = _now(op, inputs, types, context)
        if not outputs:
            return [Array._around(value, ctx) for value in values], context
        shapes = [value.shape for value in values]
    for k, (shape, dtype) in enumerate(zip(shapes, types, strict=True)):
        if k >= len(outputs):
            outputs.append(Array._new(dense(tuple(shape), dtype), ctx))
        elif (outputs[k].shape, outputs[k]._dtype) != (tuple(shape), dtype):
            expected = f"shape {tuple(shape)} of {dtype.name}"
            got = f"shape {outputs[k].shape} of {outputs[k]._dtype.name}"
            raise ShapeError(complaint(op.name, "out", expected, got))
    wanted = op.resources([x.shape for x in arguments])
    requests = [kWriteTo] * len(outputs)

    by_numpy = type(op).run is HostOp.run

    def forward() -> None:
        if by_numpy:
            op.run_on(context, views(inputs), requests, views(outputs))
        else:
            op.run(context, blobs(arguments), requests, blobs(outputs), blobs(states))

    push(op, op.name, forward, context, wanted, inputs, [*outputs, *states], ctx)
    return outputs, context


def _inferred(
    op: Any, shapes: Sequence[Any], types: Sequence[DType], as_set: bool
) -> tuple[Any, Any]:
    """The shapes and dtypes of all outputs, which may depend on how `np_shape` is set.

    Raises:
        ShapeError: an argument has another shape than the operator's rule says of it.
    """
    wanted, found, _ = op.infer_shape(list(shapes), zero_unknown=False)
    for name, given, shape in zip(op.arguments(), shapes, wanted, strict=True):
        if shape is not None and tuple(shape) != given:
            raise ShapeError(complaint(op.name, name, f"shape {tuple(shape)}", given))
    return found, op.infer_type(list(types))[1]


_by_rules = lru_cache(maxsize=1024)(_inferred)  # a record's rules give the same each time


def _now(op: HostOp, inputs: Sequence[Any], types: Any, context: OpContext) -> list[Any]:
    """Outputs of which values decide the shapes, computed here once these are there."""
    for x in inputs:
        x.wait_to_read()
    found = op.results(views(inputs), {"train": context.is_train})
    pairs = zip(found, types, strict=True)
    return [np.require(convert(x, t.numpy), requirements=("C", "W", "O")) for x, t in pairs]


def run_backward(
    gradient: Any,
    context: OpContext,
    parts: tuple[Sequence[Any], Sequence[Any], Sequence[Any]],
    grads: Sequence[Any],
    requests: Sequence[Any],
    ctx: Context,
) -> None:
    """Store the gradients of an operator's arguments into `grads` as `requests` say.

    It may change its states.
    """
    op = gradient.op
    count = len(op.arguments())
    out_grads, inputs, outputs = parts
    wanted = op.resources(gradient.shapes[0][:count], backward=True)
    made = [None if r == kNullOp else g for g, r in zip(grads, requests, strict=True)]

    by_numpy = type(op).run_backward is HostOp.run_backward

    def backward() -> None:
        if by_numpy:
            op.run_backward_on(context, list(map(views, parts)), list(requests), views(made))
            return
        op.run_backward(
            context,
            blobs(out_grads),
            blobs(inputs[:count]),
            blobs(outputs),
            list(requests),
            blobs(made),
            blobs(inputs[count:]),
        )

    read = [x for part in parts for x in part if x is not None]
    written = [g for g in (*made, *inputs[count:]) if g is not None]
    push(op, f"_backward_{op.name}", backward, context, wanted, read, written, ctx)


def views(arrays: Sequence[Any]) -> list[Any]:
    """The arrays as operators see them that work by NumPy; None stays None."""
    return [None if x is None else x._numpy() for x in arrays]


def blobs(arrays: Sequence[Any]) -> list[Any]:
    """The arrays as operators see them; None stays None."""
    return [None if x is None else shadow.TBlob(x._buffer()) for x in arrays]


def over(tensor: Buffer, ctx: Context) -> Any:
    """An NDArray on the memory of `tensor`, which it keeps."""
    nbytes = prod(tensor.shape) * tensor.dtype.size
    chunk = Chunk(tensor.address, ctx, tensor, nbytes, shared=True)
    return Array._at(chunk, strided(tensor.shape, tensor.strides, tensor.dtype))


def push(
    op: Any,
    name: str,
    function: Any,
    context: OpContext,
    wanted: Sequence[Any],
    read: Sequence[Any],
    written: Sequence[Any],
    ctx: Context,
) -> None:
    """Have `function` called, which reads and writes these arrays, with its resources.

    A worker calls it, unless the operator says that it is brief: a turn of a worker takes longer.
    """
    resources = [request(each, ctx) for each in wanted]

    def call(run_ctx: Any) -> None:
        context.run_ctx, context.requested = run_ctx, resources
        function()

    mutate = dict.fromkeys([x._var for x in written] + [r.var for r in resources])
    const = dict.fromkeys(x._var for x in read if x._var not in mutate)
    brief = sum([x.size for x in (*read, *written)]) <= op.brief
    pushed = engine.get().push_inline if brief else engine.get().push_operator
    pushed(call, ctx, tuple(const), tuple(mutate), name=name)
