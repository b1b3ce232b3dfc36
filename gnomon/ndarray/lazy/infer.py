"""What an operator makes of operands of given layouts: shapes and dtypes, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.base import ShapeError, complaint
from gnomon.ndarray.core.layout import Layout
from gnomon.ops.derive import shapes_of, types_of
from gnomon.ops.infer import check_count


def infer(
    op: Any, inputs: Sequence[Layout], given: Sequence[Any] | None = None
) -> list[tuple[Any, Any]]:
    """Shape and dtype of every output; an error where inputs or `given` do not fit."""
    count = len(op.arguments())
    arguments, states = inputs[:count], inputs[count:]
    check_count(op.name, op.inputs(), len(inputs))
    outs = tuple([x.shape for x in given]) if given else (None,) * len(op.outputs())
    _, shapes, state_shapes = shapes_of(op, tuple([x.shape for x in arguments]), outs)
    out_types = tuple([x._dtype for x in given or ()])
    _, types, state_types = types_of(op, tuple([x.dtype for x in arguments]), out_types)
    for name, shape, dtype in zip(op.outputs(), shapes, types, strict=True):
        if shape is None or dtype is None or min(shape, default=0) < 0:
            raise ShapeError(complaint(op.name, name, "a shape that the inputs decide", shape))
    wanted = zip(op.auxiliary(), state_shapes, state_types, states, strict=True)
    for name, shape, dtype, state in wanted:
        if (shape, dtype) != (state.shape, state.dtype):
            expected = f"shape {shape} of {dtype.name}"
            got = f"shape {state.shape} of {state.dtype.name}"
            raise ShapeError(complaint(op.name, name, expected, got))
    return list(zip(shapes, types, strict=True))
