"""Shapes: the same elements elsewhere. Reshaping, cutting, joining, repeating, stretching."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gnomon.onnx import fold
from gnomon.onnx.reader import UNKNOWN, OnnxCall, Reader, Scalar, normal
from gnomon.onnx.table import Unsupported, reads, writes, writes_as
from gnomon.onnx.writer import Call, Writer, fixed


@writes("Reshape squeeze expand_dims", "Reshape")
def write_reshape(w: Writer, x: Call) -> str:
    return w.reshape(x.inputs[0], x.shape(), x.out_shape())


writes_as("Flatten", "Flatten")


@writes("reshape_like", "Shape Reshape")
def write_reshape_like(w: Writer, x: Call) -> str:
    bounds = (x.op.lhs_begin, x.op.lhs_end, x.op.rhs_begin, x.op.rhs_end)
    if all(b is None for b in bounds):
        return w.op("Reshape", x.inputs[0], w.op("Shape", x.inputs[1]))
    return w.reshape(x.inputs[0], x.shape(), x.out_shape())


def reshaped(r: Reader, x: Any, shape: Any) -> Any:
    """A symbol in another shape; without axes it is a scalar."""
    return r.op("Reshape", x, shape=tuple(shape)) if len(shape) else Scalar(one(r, x))


def one(r: Reader, x: Any) -> Any:
    """A symbol of one element as (1,)."""
    return x if r.shape(x) == (1,) else r.op("Reshape", x, shape=(1,))


@reads("Reshape")
def read_reshape(r: Reader, n: OnnxCall) -> Any:
    codes = n.const(1).tolist() if n.has(1) else n.need("shape")
    old = n.shape()
    if n.attr("allowzero", 0) and 0 in codes:
        raise Unsupported("a shape without elements")
    return reshaped(r, n.symbol(), [_code(k, code, old) for k, code in enumerate(one_free(codes))])


def one_free(codes: list[Any]) -> list[Any]:
    """A size that is not known is the one that is left, where there is no other."""
    opened = [k for k, code in enumerate(codes) if isinstance(code, fold.Dim)]
    if len(opened) == 1 and -1 not in codes:
        return [-1 if k in opened else code for k, code in enumerate(codes)]
    return codes


def _code(k: int, code: Any, old: Any) -> int:
    """One number of a shape as `Reshape` of MXNet reads it: a size, -1, or 0 for a copy."""
    if not isinstance(code, fold.Dim):
        copied = code == 0 and old is not None and k < len(old) and old[k] != UNKNOWN
        return int(old[k] if copied else code)
    if code.axis == k and old is not None and k < len(old) and old[k] == UNKNOWN:
        return 0
    raise Unsupported("several sizes that the inputs' shapes leave open: give input_shapes")


@reads("Flatten")
def read_flatten(r: Reader, n: OnnxCall) -> Any:
    rank = n.rank()
    axis = n.attr("axis", 1)
    axis = axis + rank if axis < 0 else axis
    if axis == 1 and rank > 1:
        return r.op("Flatten", n.symbol())
    rows = int(np.prod(n.dims()[:axis], dtype=np.int64)) if axis else 1
    return r.op("Reshape", n.symbol(), shape=(rows, -1))


@reads("Squeeze")
def read_squeeze(r: Reader, n: OnnxCall) -> Any:
    shape, axes = n.shape(), n.ints("axes", 1)
    rank = n.rank()
    if axes is None:
        axes = [k for k, size in enumerate(n.dims()) if size == 1]
    axes = [normal(a, rank) for a in axes]
    if len(axes) == rank:
        return Scalar(one(r, n.symbol()))
    if any(shape[a] not in (1, UNKNOWN) for a in axes):
        raise Unsupported(f"axes {axes} of shape {shape}")
    return r.op("squeeze", n.symbol(), axis=tuple(axes)) if axes else n.value(0)


@reads("Unsqueeze")
def read_unsqueeze(r: Reader, n: OnnxCall) -> Any:
    axes = n.ints("axes", 1)
    if axes is None:
        raise Unsupported("axes are missing")
    rank = n.rank() + len(axes)
    if n.value(0).scalar:
        return r.op("Reshape", n.symbol(), shape=(1,) * rank)
    x = n.symbol()
    for axis in sorted(normal(a, rank) for a in axes):
        x = r.op("expand_dims", x, axis=axis)
    return x


@writes("transpose", "Transpose")
def write_transpose(w: Writer, x: Call) -> str:
    return w.op("Transpose", *x.inputs, perm=list(x.op.axes) or None)


@writes("SwapAxis", "Transpose")
def write_swap(w: Writer, x: Call) -> str:
    order = list(range(x.rank()))
    a, b = x.axis(x.op.dim1), x.axis(x.op.dim2)
    order[a], order[b] = b, a
    return w.op("Transpose", *x.inputs, perm=order)


@reads("Transpose")
def read_transpose(r: Reader, n: OnnxCall) -> Any:
    return n.value(0) if n.rank() == 0 else r.op("transpose", n.symbol(), axes=n.attr("perm", ()))


writes_as("shape_array", "Shape")


@writes("size_array", "Size Reshape")
def write_size(w: Writer, x: Call) -> str:
    return w.op("Reshape", w.op("Size", *x.inputs), w.const([1]))


@reads("Shape")
def read_shape(r: Reader, n: OnnxCall) -> Any:
    if n.attr("start", 0) or n.attr("end") is not None:
        raise Unsupported("a part of a shape that is not known")
    return r.op("shape_array", n.symbol())


@reads("Size")
def read_size(r: Reader, n: OnnxCall) -> Any:
    return Scalar(r.op("size_array", n.symbol()))


# joining and cutting ---------------------------------------------------------------------------


writes_as("Concat _rnn_param_concat", "Concat", axis="dim")


@reads("Concat")
def read_concat(r: Reader, n: OnnxCall) -> Any:
    axis = n.attr("axis", 1)
    if len(n.values) == 1:
        return n.value(0)
    return r.op("Concat", *n.symbols(), dim=normal(axis, n.rank()), num_args=len(n.values))


@writes("stack", "Unsqueeze Concat")
def write_stack(w: Writer, x: Call) -> str:
    axis = x.op.axis + x.rank() + 1 if x.op.axis < 0 else x.op.axis
    return w.op("Concat", *(w.axes_op("Unsqueeze", i, [axis]) for i in x.inputs), axis=axis)


def _split(w: Writer, x: Call, count: int, sizes: list[int] | None) -> list[str]:
    axis = x.axis(x.op.axis)
    parts = [] if sizes is None else [w.const(sizes)]
    if count == 1 and sizes is None:
        return [w.op("Identity", x.inputs[0])]
    found = w.many("Split", count, x.inputs[0], *parts, axis=axis)
    if x.op.squeeze_axis:
        found = [w.axes_op("Squeeze", f, [axis]) for f in found]
    return found


@writes("SliceChannel", "Split Squeeze Identity")
def write_split(w: Writer, x: Call) -> list[str]:
    if x.op.num_outputs == 1 and x.op.squeeze_axis:
        return [w.axes_op("Squeeze", x.inputs[0], [x.axis(x.op.axis)])]
    return _split(w, x, x.op.num_outputs, None)


@writes("_split_v2", "Split Squeeze Slice")
def write_split_v2(w: Writer, x: Call) -> list[str]:
    size = x.shape()[x.axis(x.op.axis)]
    bounds = x.op.bounds(fixed([size], "along its axis")[0])
    sizes = [b - a for a, b in pairwise(bounds)]
    if bounds[0] == 0:
        return _split(w, x, len(sizes), sizes)
    found = _split(w, x, len(sizes) + 1, [bounds[0], *sizes])
    return found[1:]


@reads("Split")
def read_split(r: Reader, n: OnnxCall) -> Any:
    axis, sizes = n.axis(0), n.ints("split", 1)
    size = n.dims()[axis]
    if sizes is None:
        each = -(-size // n.outputs)
        sizes = [min(each, size - k * each) for k in range(n.outputs)]
    if sum(sizes) != size or min(sizes, default=0) < 1:
        raise Unsupported(f"parts of {sizes} of {size} elements")
    ends = np.cumsum(sizes).tolist()
    rows = zip([0, *ends], ends, strict=False)
    return [r.op("slice_axis", n.symbol(), axis=axis, begin=a, end=b) for a, b in rows]


@writes("slice", "Slice")
def write_slice(w: Writer, x: Call) -> str:
    op = x.op
    rows = [
        (k, *bounds)
        for k, bounds in enumerate(zip(op.begin, op.end, op.steps, strict=True))
        if bounds != (None, None, None)
    ]
    axes, begins, ends, steps = [], [], [], []
    far = np.iinfo(np.int64)
    for k, begin, end, step in rows:
        back = (step or 1) < 0
        axes.append(k)
        begins.append((far.max if back else 0) if begin is None else begin)
        ends.append((far.min if back else far.max) if end is None else end)
        steps.append(step or 1)
    return w.slice(x.inputs[0], axes, begins, ends, steps) if axes else x.inputs[0]


@writes("slice_axis", "Slice")
def write_slice_axis(w: Writer, x: Call) -> str:
    end = np.iinfo(np.int64).max if x.op.end is None else x.op.end
    return w.slice(x.inputs[0], [x.axis(x.op.axis)], [x.op.begin], [end])


def _like(w: Writer, x: Call, axes: list[int]) -> str:
    """`x` cut along axes to the sizes of the second input."""
    size = w.op("Gather", w.op("Shape", x.inputs[1]), w.const(axes))
    return w.op("Slice", x.inputs[0], w.const([0] * len(axes)), size, w.const(axes))


@writes("slice_like", "Shape Gather Slice")
def write_slice_like(w: Writer, x: Call) -> str:
    axes = [x.axis(a) for a in x.op.axes] or list(range(x.rank()))
    if all(isinstance(x.shape(1)[a], int) for a in axes):
        return w.slice(x.inputs[0], axes, [0] * len(axes), [x.shape(1)[a] for a in axes])
    return _like(w, x, axes)


@writes("Crop", "Slice")
def write_crop(w: Writer, x: Call) -> str:
    height, width = x.out_shape()[2:]
    rows, columns = fixed(x.shape()[2:], "of the image")
    sizes = fixed([height, width], "of the cut")
    if x.op.center_crop:
        offset = ((rows - sizes[0]) // 2, (columns - sizes[1]) // 2)
    else:
        offset = (x.op.offset[0], x.op.offset[-1])
    ends = [o + s for o, s in zip(offset, sizes, strict=True)]
    return w.slice(x.inputs[0], [2, 3], offset, ends)


@reads("Slice")
def read_slice(r: Reader, n: OnnxCall) -> Any:
    parts = [n.const(k) if n.has(k) else None for k in range(1, len(n.values))]
    cuts = fold.slices(n, n.rank(), parts)
    begin, end, step = ([getattr(c, part) for c in cuts] for part in ("start", "stop", "step"))
    if 0 in step:
        raise Unsupported("a step of 0")
    for size, cut in zip(n.shape(), cuts, strict=True):
        if size != UNKNOWN and not range(*cut.indices(size)):
            raise Unsupported("a slice without elements")
    if all(c == slice(None) for c in cuts):
        return n.value(0)
    return r.op("slice", n.symbol(), begin=tuple(begin), end=tuple(end), step=tuple(step))


# repeating and stretching ----------------------------------------------------------------------


@writes("tile", "Reshape Tile")
def write_tile(w: Writer, x: Call) -> str:
    reps, data, shape = list(x.op.reps), x.inputs[0], x.shape()
    if len(reps) > len(shape):
        codes = [1] * (len(reps) - len(shape)) + [s if isinstance(s, int) else -1 for s in shape]
        if codes.count(-1) > 1:
            raise Unsupported("more repeats than axes, and several sizes left open")
        data = w.op("Reshape", data, w.const(codes))
    reps = [1] * (len(shape) - len(reps)) + reps
    return w.op("Tile", data, w.const(reps))


@reads("Tile")
def read_tile(r: Reader, n: OnnxCall) -> Any:
    reps = n.ints("", 1)
    if len(reps) != n.rank() or min(reps, default=1) < 1:
        raise Unsupported(f"repeats {reps} of {n.rank()} axes")
    return r.op("tile", n.symbol(), reps=tuple(reps))


@writes("repeat", "Reshape Unsqueeze Tile")
def write_repeat(w: Writer, x: Call) -> str:
    data, axis, count = x.inputs[0], x.op.axis, x.op.repeats
    if axis is None:
        rows = w.op("Reshape", data, w.const([-1, 1]))
        return w.op("Reshape", w.op("Tile", rows, w.const([1, count])), w.const([-1]))
    axis, rank = x.axis(axis), x.rank()
    reps = [1] * (rank + 1)
    reps[axis + 1] = count
    wide = w.op("Tile", w.axes_op("Unsqueeze", data, [axis + 1]), w.const(reps))
    before = [0] * axis
    after = [s if isinstance(s, int) else None for s in x.shape()[axis + 1 :]]
    if None in after:
        raise Unsupported("a size behind the axis is left open")
    return w.op("Reshape", wide, w.const([*before, -1, *after]))


def stretch(w: Writer, name: str, shape: Any) -> str:
    """A tensor stretched to a shape in which free sizes stay as they are."""
    return w.op("Expand", name, w.const([s if isinstance(s, int) else 1 for s in shape]))


@writes("broadcast_to broadcast_axis", "Expand")
def write_broadcast(w: Writer, x: Call) -> str:
    return stretch(w, x.inputs[0], x.out_shape())


@writes("broadcast_like", "Shape Expand")
def write_broadcast_like(w: Writer, x: Call) -> str:
    if x.op.lhs_axes is None:
        return w.op("Expand", x.inputs[0], w.op("Shape", x.inputs[1]))
    return stretch(w, x.inputs[0], fixed(x.out_shape(), "of the output"))


@reads("Expand", elementwise=False)
def read_expand(r: Reader, n: OnnxCall) -> Any:
    codes = n.const(1).tolist()
    old = n.shape()
    rank = max(len(codes), n.rank())
    x = n.symbol()
    if rank == 0:
        return n.value(0)
    for _ in range(rank - max(n.rank(), 1)):
        x = r.op("expand_dims", x, axis=0)
    old = [1] * (rank - len(old)) + list(old)
    codes = [1] * (rank - len(codes)) + codes
    new = [0 if code == 1 or isinstance(code, fold.Dim) else code for code in codes]
    for k, (a, b) in enumerate(zip(old, codes, strict=True)):
        if isinstance(b, fold.Dim) and (b.axis != k or a == 1):
            raise Unsupported("sizes that the inputs' shapes leave open: give input_shapes")
        if 1 not in (a, b) and a != b and not isinstance(b, fold.Dim) and a != UNKNOWN:
            raise Unsupported(f"shape {old} stretched to {codes}")
    new = [0 if a == b else b for a, b in zip(old, new, strict=True)]
    new = [a if a not in (1, UNKNOWN) and b == 0 else b for a, b in zip(old, new, strict=True)]
    return r.op("broadcast_to", x, shape=tuple(new))


@writes("depth_to_space", "DepthToSpace")
def write_depth_to_space(w: Writer, x: Call) -> str:
    return w.op("DepthToSpace", *x.inputs, blocksize=x.op.block_size, mode="DCR")


@reads("DepthToSpace")
def read_depth_to_space(r: Reader, n: OnnxCall) -> Any:
    size = n.need("blocksize")
    if n.attr("mode", "DCR") == "DCR":
        return r.op("depth_to_space", n.symbol(), block_size=size)
    batch, channels, height, width = n.dims()
    inner = channels // size**2
    apart = r.op("Reshape", n.symbol(), shape=(batch, inner, size, size, height, width))
    turned = r.op("transpose", apart, axes=(0, 1, 4, 2, 5, 3))
    return r.op("Reshape", turned, shape=(batch, inner, height * size, width * size))


writes_as("space_to_depth", "SpaceToDepth", blocksize="block_size")


@reads("SpaceToDepth")
def read_space_to_depth(r: Reader, n: OnnxCall) -> Any:
    n.unsupported(mode="DCR")
    return r.op("space_to_depth", n.symbol(), block_size=n.need("blocksize"))


@writes("reverse", "Slice")
def write_reverse(w: Writer, x: Call) -> str:
    axes = [x.axis(a) for a in np.atleast_1d(x.op.axis).tolist()]
    least = np.iinfo(np.int64).min
    count = len(axes)
    return w.slice(x.inputs[0], axes, [-1] * count, [least] * count, [-1] * count)


@writes("Pad", "Pad")
def write_pad(w: Writer, x: Call) -> str:
    width = x.op.pad_width
    pads = w.const([*width[::2], *width[1::2]])
    value = [w.const(x.op.constant_value, x.dtype())] if x.op.mode == "constant" else []
    return w.op("Pad", x.inputs[0], pads, *value, mode=x.op.mode)


@reads("Pad")
def read_pad(r: Reader, n: OnnxCall) -> Any:
    mode, rank = n.attr("mode", "constant"), n.rank()
    if mode not in ("constant", "edge", "reflect"):
        raise Unsupported(f"mode {mode!r}")
    pads = n.ints("pads", 1)
    axes = n.ints("", 3) or range(rank)
    value = float(n.const(2).item()) if n.has(2) and n.const(2).size else n.attr("value", 0.0)
    width = [(0, 0)] * rank
    half = len(pads) // 2
    for axis, before, after in zip(axes, pads[:half], pads[half:], strict=True):
        width[normal(axis, rank)] = (before, after)
    return padded(r, n.symbol(), width, mode, value)


def padded(r: Reader, x: Any, width: list[tuple[int, int]], mode: str, value: float) -> Any:
    """A symbol with elements added along its axes; the operator does it along axes after two."""
    cut = [(max(-a, 0), max(-b, 0)) for a, b in width]
    if any(a or b for a, b in cut):
        ends = tuple(-b or None for _, b in cut)
        x = r.op("slice", x, begin=tuple(a or None for a, _ in cut), end=ends)
    wide = [(max(a, 0), max(b, 0)) for a, b in width]
    moved = [k for k, pair in enumerate(wide) if any(pair)]
    rank = len(wide)
    if not moved:
        return x
    if rank > 5 or len(moved) > 3:
        raise Unsupported(f"{len(moved)} axes of {rank} that become longer")
    kept = [k for k in range(rank) if k not in moved]
    while len(moved) < min(2, rank) or len(kept) > 2:
        moved = [kept.pop(), *moved]
    order = [*kept, *moved]
    sizes = r.shape(x)
    lead = [1] * (2 - len(kept))
    spare = [1] * max(2 - len(moved), 0)
    turned = r.op("transpose", x, axes=tuple(order)) if order != sorted(order) else x
    shape = (*lead, *(sizes[k] for k in kept), *spare, *(sizes[k] for k in moved))
    turned = r.op("Reshape", turned, shape=shape) if shape != r.shape(turned) else turned
    flat = [0] * (4 + 2 * len(spare)) + [p for k in moved for p in wide[k]]
    given = {"constant_value": value} if mode == "constant" else {}
    made = r.op("Pad", turned, mode=mode, pad_width=tuple(flat), **given)
    final = [UNKNOWN if sizes[k] == UNKNOWN else sizes[k] + sum(wide[k]) for k in order]
    if tuple(final) != r.shape(made):
        made = r.op("Reshape", made, shape=tuple(final))
    back = tuple(int(k) for k in np.argsort(order))
    return r.op("transpose", made, axes=back) if order != sorted(order) else made
