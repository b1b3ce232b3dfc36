"""Elements by their positions: rows of tables, parts along an axis, one hot codes, sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.onnx.families.create import filled
from gnomon.onnx.families.elementwise import cast
from gnomon.onnx.fold import bounded
from gnomon.onnx.reader import OnnxCall, Reader, Scalar, normal
from gnomon.onnx.table import Unsupported, reads, writes
from gnomon.onnx.writer import Call, Writer, fixed


def places(w: Writer, name: str, size: Any, mode: str = "clip") -> str:
    """Positions below `size`: fractions cut off, those outside clipped or wrapped."""
    whole = w.cast(name, "int64")
    if mode == "raise" or not isinstance(size, int):
        return whole
    if mode == "wrap":
        return w.op("Mod", whole, w.const(size))
    return w.op("Clip", whole, w.const(0), w.const(size - 1))


@writes("Embedding _contrib_SparseEmbedding", "Cast Clip Gather")
def write_embedding(w: Writer, x: Call) -> str:
    return w.op("Gather", x.inputs[1], places(w, x.inputs[0], x.op.input_dim), axis=0)


@writes("take", "Cast Clip Mod Gather")
def write_take(w: Writer, x: Call) -> str:
    axis = x.axis(x.op.axis)
    at = places(w, x.inputs[1], x.shape()[axis], x.op.mode)
    return w.op("Gather", x.inputs[0], at, axis=axis)


@reads("Gather")
def read_gather(r: Reader, n: OnnxCall) -> Any:
    axis, at = n.axis(0), n.value(1)
    x = n.symbol()
    if at.array is not None and at.array.ndim == 0 and at.array.dtype != object:
        size, k = n.shape()[axis], int(at.array)
        if size > 0 and not -size <= k < size:
            raise Unsupported(f"position {k} of {size}")
        k = k + size if k < 0 and size > 0 else k
        part = r.op("slice_axis", x, axis=axis, begin=k, end=k + 1 if k != -1 else None)
        return Scalar(part) if n.rank() == 1 else r.op("squeeze", part, axis=(axis,))
    found = r.op("take", x, n.symbol(1), axis=axis, mode="wrap")
    if not at.scalar:
        return found
    return Scalar(found) if n.rank() == 1 else r.op("squeeze", found, axis=(axis,))


@writes("pick", "Cast Clip Mod Unsqueeze GatherElements Squeeze")
def write_pick(w: Writer, x: Call) -> str:
    if x.op.axis is None:
        raise Unsupported("axis = None")
    axis = x.axis(x.op.axis)
    at = places(w, x.inputs[1], x.shape()[axis], x.op.mode)
    if x.rank(1) != x.rank(0):
        at = w.axes_op("Unsqueeze", at, [axis])
    found = w.op("GatherElements", x.inputs[0], at, axis=axis)
    if x.op.keepdims or x.rank() == 1:
        return found
    return w.axes_op("Squeeze", found, [axis])


@writes("batch_take", "Cast Clip Unsqueeze GatherElements Squeeze")
def write_batch_take(w: Writer, x: Call) -> str:
    at = w.axes_op("Unsqueeze", places(w, x.inputs[1], x.shape()[1]), [1])
    return w.axes_op("Squeeze", w.op("GatherElements", x.inputs[0], at, axis=1), [1])


def _every(r: Reader, indices: Any, axis: int) -> Any:
    """The places of all elements of `indices`, its values along `axis`: rows of indices."""
    shape = bounded(r.dims(indices))
    rows = [np.broadcast_to(row, shape).astype(np.int64) for row in np.indices(shape, sparse=True)]
    parts = [
        r.op("expand_dims", cast(r, indices, "int64"), axis=0) if k == axis else row[None]
        for k, row in enumerate(rows)
    ]
    return r.op("Concat", *parts, dim=0, num_args=len(parts)) if len(parts) > 1 else parts[0]


@reads("GatherElements")
def read_gather_elements(r: Reader, n: OnnxCall) -> Any:
    return r.op("gather_nd", n.symbol(), _every(r, n.symbol(1), n.axis(0)))


@reads("ScatterElements Scatter")
def read_scatter_elements(r: Reader, n: OnnxCall) -> Any:
    n.unsupported(reduction="none")
    at = _every(r, n.symbol(1), n.axis(0))
    return _put(r, n, at)


def _put(r: Reader, n: OnnxCall, at: Any) -> Any:
    """Input 0 with input 2 at other places; what counts from the end is made to count from the
    beginning."""
    sizes = np.asarray(n.dims()[: r.dims(at)[0]]).reshape(-1, *[1] * (r.rank(at) - 1))
    at = r.op("broadcast_mod", at, sizes.astype(np.int64))
    return r.op("_scatter_set_nd", n.symbol(), n.symbol(2), at, shape=n.dims())


def _leading(r: Reader, indices: Any) -> Any:
    """Indices with the axis that goes through the axes of the data first, not last."""
    rank = r.rank(indices)
    order = (rank - 1, *range(rank - 1))
    return r.op("transpose", indices, axes=order) if rank > 1 else indices


@writes("gather_nd", "Transpose Cast GatherND Reshape")
def write_gather_nd(w: Writer, x: Call) -> str:
    rank = x.rank(1)
    at = w.op("Transpose", x.inputs[1], perm=[*range(1, rank), 0]) if rank > 1 else x.inputs[1]
    found = w.op("GatherND", x.inputs[0], w.cast(at, "int64"))
    whole = rank == 1 and x.shape(1)[0] == x.rank()
    return w.op("Reshape", found, w.const([1])) if whole else found


@reads("GatherND")
def read_gather_nd(r: Reader, n: OnnxCall) -> Any:
    batch, at = n.attr("batch_dims", 0), _leading(r, n.symbol(1))
    if batch:
        shape = r.dims(at)[1:]
        rows = [np.broadcast_to(i, shape) for i in np.indices(shape, sparse=True)[:batch]]
        rows = [row[None].astype(np.int64) for row in rows]
        at = r.op("Concat", *rows, cast(r, at, "int64"), dim=0, num_args=batch + 1)
    found = r.op("gather_nd", n.symbol(), at)
    return Scalar(found) if n.rank(1) == 1 and n.shape(1)[0] == n.rank() else found


@writes("scatter_nd", "ConstantOfShape Transpose Cast ScatterND")
def write_scatter_nd(w: Writer, x: Call) -> str:
    rank = x.rank(1)
    at = w.op("Transpose", x.inputs[1], perm=[*range(1, rank), 0]) if rank > 1 else x.inputs[1]
    zeros = filled(w, w.const(list(x.op.shape)), 0, x.dtype())
    return w.op("ScatterND", zeros, w.cast(at, "int64"), x.inputs[0], reduction="add")


@writes("_scatter_set_nd", "Transpose Cast ScatterND")
def write_scatter_set(w: Writer, x: Call) -> str:
    rank = x.rank(2)
    at = w.op("Transpose", x.inputs[2], perm=[*range(1, rank), 0]) if rank > 1 else x.inputs[2]
    return w.op("ScatterND", x.inputs[0], w.cast(at, "int64"), x.inputs[1])


@reads("ScatterND")
def read_scatter_nd(r: Reader, n: OnnxCall) -> Any:
    at, reduction = cast(r, _leading(r, n.symbol(1)), "int64"), n.attr("reduction", "none")
    if reduction == "none":
        return _put(r, n, at)
    if reduction != "add":
        raise Unsupported(f"reduction {reduction!r}")
    more = r.op("scatter_nd", n.symbol(2), at, shape=n.dims())
    return r.op("elemwise_add", n.symbol(), more)


@writes("one_hot", "Cast Less Where OneHot")
def write_one_hot(w: Writer, x: Call) -> str:
    """A negative index is of no class in MXNet and counts from the end in ONNX."""
    depth, dtype = x.op.depth, x.out_dtype()
    at = w.cast(x.inputs[0], "int64")
    at = w.op("Where", w.op("Less", at, w.const(0)), w.const(depth), at)
    return w.op("OneHot", at, w.const(depth), w.const([x.op.off_value, x.op.on_value], dtype))


@reads("OneHot")
def read_one_hot(r: Reader, n: OnnxCall) -> Any:
    depth, values = int(n.const(1).item()), n.const(2)
    rank = n.rank()
    axis = normal(n.attr("axis", -1), rank + 1)
    at = cast(r, n.symbol(), "float32")
    at = r.op(
        "where", r.op("_lesser_scalar", at, scalar=0), r.op("_plus_scalar", at, scalar=depth), at
    )
    off, on = values.tolist()
    found = r.op("one_hot", at, depth=depth, on_value=float(on), off_value=float(off),
                 dtype=values.dtype.name)  # fmt: skip
    if rank == 0:
        return r.op("Reshape", found, shape=(depth,))
    order = [*range(axis), rank, *range(axis, rank)]
    return r.op("transpose", found, axes=tuple(order)) if axis != rank else found


@writes("diag", "Unsqueeze Pad Mul Slice ReduceSum")
def write_diag(w: Writer, x: Call) -> str:
    if x.rank() == 1:
        size = x.dims()[0] + abs(x.op.k)
        mask = np.eye(size, k=x.op.k)
        column = w.axes_op("Unsqueeze", x.inputs[0], [0])
        pads = w.const([0, max(x.op.k, 0), 0, max(-x.op.k, 0)])
        return w.op("Mul", w.op("Pad", column, pads), w.const(mask, x.dtype()))
    rows, columns, length = x.op.parts(x.dims())
    if (rows, columns) != (0, 1) or x.rank() != 2:
        raise Unsupported("a diagonal of more than a matrix")
    first = [max(-x.op.k, 0), max(x.op.k, 0)]
    ends = [f + length for f in first]
    square = w.slice(x.inputs[0], [0, 1], first, ends)
    kept = w.op("Mul", square, w.const(np.eye(length), x.dtype()))
    return w.axes_op("ReduceSum", kept, [1], keepdims=0)


@reads("Trilu")
def read_trilu(r: Reader, n: OnnxCall) -> Any:
    upper, k = n.attr("upper", 1), int(n.const(1).item()) if n.has(1) else 0
    shape = bounded(n.dims())
    mask = np.tri(*shape[-2:], k - 1 if upper else k, dtype=bool)
    mask = np.broadcast_to(~mask if upper else mask, shape)
    x = n.symbol()
    return r.op("where", mask.astype(np.float32), x, r.op("zeros_like", x))


# sequences -------------------------------------------------------------------------------------


def inside(w: Writer, x: Call, axis: int) -> str:
    """True within each sequence, in the shape of the data but for the axes after time."""
    steps = x.shape()[axis]
    if not isinstance(steps, int):
        raise Unsupported("the number of steps is left open")
    line = np.arange(steps).reshape((1, -1) if axis == 1 else (-1, 1))
    lengths = w.axes_op("Unsqueeze", w.cast(x.inputs[1], "int64"), [axis])
    return w.op("Less", w.const(line), lengths)


@writes("SequenceMask", "Cast Unsqueeze Less Where Identity")
def write_sequence_mask(w: Writer, x: Call) -> str:
    if not x.op.use_sequence_length:
        return x.inputs[0]
    mask = inside(w, x, x.op.axis)
    if x.rank() > 2:
        mask = w.axes_op("Unsqueeze", mask, range(2, x.rank()))
    return w.op("Where", mask, x.inputs[0], w.const(x.op.value, x.dtype()))


@writes("SequenceReverse", "Slice Cast ReverseSequence")
def write_sequence_reverse(w: Writer, x: Call) -> str:
    if not x.op.use_sequence_length:
        least = np.iinfo(np.int64).min
        return w.slice(x.inputs[0], [x.op.axis], [-1], [least], [-1])
    lengths = w.cast(x.inputs[1], "int64")
    axis = x.op.axis
    return w.op("ReverseSequence", x.inputs[0], lengths, time_axis=axis, batch_axis=1 - axis)


@reads("ReverseSequence")
def read_reverse_sequence(r: Reader, n: OnnxCall) -> Any:
    time, batch = n.attr("time_axis", 0), n.attr("batch_axis", 1)
    x = n.symbol() if time == 0 else r.op("SwapAxis", n.symbol(), dim1=0, dim2=1)
    if {time, batch} != {0, 1}:
        raise Unsupported(f"time_axis {time} and batch_axis {batch}")
    lengths = cast(r, n.symbol(1), n.dtype().name)
    found = r.op("SequenceReverse", x, lengths, use_sequence_length=True)
    return found if time == 0 else r.op("SwapAxis", found, dim1=0, dim2=1)


@writes("SequenceLast", "Gather Cast Sub Unsqueeze GatherND Transpose Squeeze")
def write_sequence_last(w: Writer, x: Call) -> str:
    axis, data = x.op.axis, x.inputs[0]
    if not x.op.use_sequence_length:
        return w.op("Gather", data, w.const(-1), axis=axis)
    order: Sequence[int] = [1, 0, *range(2, x.rank())]
    data = w.op("Transpose", data, perm=order) if axis == 0 else data
    last = w.op("Sub", w.cast(x.inputs[1], "int64"), w.const(1))
    return w.op("GatherND", data, w.axes_op("Unsqueeze", last, [1]), batch_dims=1)


@writes("_contrib_index_array", "")
def write_index_array(w: Writer, x: Call) -> str:
    shape = fixed(x.shape(), "of the data")
    axes = range(len(shape)) if x.op.axes is None else x.op.axes
    grid = np.indices(shape)
    return w.const(np.stack([grid[a] for a in axes], -1))
