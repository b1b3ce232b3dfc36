"""Images: other sizes, samples at places, regions, boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.onnx.families.elementwise import cast
from gnomon.onnx.families.nn import transposed
from gnomon.onnx.families.resample import matrix, nearest
from gnomon.onnx.reader import OnnxCall, Reader, normal
from gnomon.onnx.table import Unsupported, reads, writes, writes_as
from gnomon.onnx.writer import Call, Writer, fixed


@writes("UpSampling", "Resize ConvTranspose Concat Sum")
def write_upsampling(w: Writer, x: Call) -> str:
    op = x.op
    if op.sample_type == "bilinear":
        return transposed(w, x, op.smooth(), x.inputs)
    wide = []
    rows, columns = (x.shape()[k] for k in (2, 3))
    for k, name in enumerate(x.inputs):
        factors = [op.scale, op.scale]
        if k:
            sizes = fixed([rows, columns], "of the first image")
            own = fixed(x.shape(k)[2:], f"of image {k}")
            factors = [s * op.scale // o for s, o in zip(sizes, own, strict=True)]
        scales = w.const([1, 1, *factors], np.float32)
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        wide.append(w.op("Resize", name, "", scales, mode="nearest", **how))
    if len(wide) == 1:
        return wide[0]
    return w.op("Concat", *wide, axis=1) if op.multi_input_mode == "concat" else w.op("Sum", *wide)


@writes("_contrib_BilinearResize2D", "Shape Slice Concat Resize")
def write_bilinear(w: Writer, x: Call) -> str:
    """A result of one pixel has the first one, as in PyTorch."""
    mode = "align_corners" if x.op.align_corners else "pytorch_half_pixel"
    space = x.out_shape()[2:]
    if all(isinstance(size, int) for size in space):
        end = w.const(space)
    elif x.op.mode == "like":
        end = w.slice(w.op("Shape", x.inputs[1]), [0], [2], [4])
    else:
        raise Unsupported("the size of the image is left open")
    front = w.slice(w.op("Shape", x.inputs[0]), [0], [0], [2])
    sizes = w.op("Concat", front, end, axis=0)
    how = {"coordinate_transformation_mode": mode}
    return w.op("Resize", x.inputs[0], "", "", sizes, mode="linear", **how)


@writes("_contrib_AdaptiveAvgPooling2D", "GlobalAveragePool AveragePool MatMul")
def write_adaptive(w: Writer, x: Call) -> str:
    counts, data = x.op.sizes, x.inputs[0]
    if counts == (1, 1):
        return w.op("GlobalAveragePool", data)
    space = x.dims()[2:]
    if all(s % c == 0 for s, c in zip(space, counts, strict=True)):
        kernel = [s // c for s, c in zip(space, counts, strict=True)]
        return w.op("AveragePool", data, kernel_shape=kernel, strides=kernel)
    rows, columns = (_means(s, c) for s, c in zip(space, counts, strict=True))
    wide = w.op("MatMul", data, w.const(columns.T, x.dtype()))
    return w.op("MatMul", w.const(rows, x.dtype()), wide)


def _means(size: int, count: int) -> Any:
    """The share of each pixel along an axis in the mean of each of `count` regions."""
    begin, end = np.arange(count) * size // count, -(-(np.arange(count) + 1) * size // count)
    places = np.arange(size)
    inside = (places >= begin[:, None]) & (places < end[:, None])
    return inside / inside.sum(1, keepdims=True)


@reads("Resize Upsample")
def read_resize(r: Reader, n: OnnxCall) -> Any:
    old = n.dims()
    axes = [normal(a, len(old)) for a in n.attr("axes", list(range(len(old))))]
    scales, new = _targets(n, [old[a] for a in axes])
    mode, x = n.attr("mode", "nearest"), n.symbol()
    how = n.attr("coordinate_transformation_mode", "half_pixel")
    if n.node.op_type == "Upsample" or n.opset < 11:
        how = "asymmetric"
    if how == "tf_crop_and_resize":
        raise Unsupported("coordinate_transformation_mode tf_crop_and_resize")
    n.unsupported(antialias=0, exclude_outside=0)
    spatial = {a: size for a, size in zip(axes, new, strict=True) if size != old[a]}
    plain = how in ("align_corners", "pytorch_half_pixel") and mode == "linear" and len(old) == 4
    exact = all(size == old[a] * s for a, size, s in zip(axes, new, scales, strict=True))
    if plain and exact and set(spatial) <= {2, 3} and spatial:
        height, width = (spatial.get(a, old[a]) for a in (2, 3))
        given = {"align_corners": how == "align_corners"}
        return r.op("_contrib_BilinearResize2D", x, height=height, width=width, **given)
    for axis, size, scale in zip(axes, new, scales, strict=True):
        if size == old[axis] and scale == 1:
            continue
        x = _along(r, n, x, axis, (old[axis], size, scale), mode, how)
    return x if x is not n.symbol() else n.value(0)


def _targets(n: OnnxCall, old: list[int]) -> tuple[list[float], list[int]]:
    """The scales and sizes of the axes that change."""
    if n.node.op_type == "Upsample" or n.opset < 11:
        given = n.const(1) if n.has(1) else np.asarray(n.need("scales"), np.float32)
        scales = [float(s) for s in given]
        return scales, [int(np.floor(o * s)) for o, s in zip(old, scales, strict=True)]
    if n.has(3) and n.const(3).size:
        sizes = [int(s) for s in n.const(3)]
        scales = [s / o for s, o in zip(sizes, old, strict=True)]
        policy = n.attr("keep_aspect_ratio_policy", "stretch")
        if policy == "stretch":
            return scales, sizes
        scale = (min if policy == "not_larger" else max)(scales)
        return [scale] * len(old), [int(np.floor(o * scale + 0.5)) for o in old]
    scales = [float(s) for s in n.const(2)]
    return scales, [int(np.floor(o * s)) for o, s in zip(old, scales, strict=True)]


def _along(r: Reader, n: OnnxCall, x: Any, axis: int, sizes: Any, mode: str, how: str) -> Any:
    """A symbol in another size along one axis."""
    if mode == "nearest":
        rounding = n.attr("nearest_mode", "round_prefer_floor")
        if n.node.op_type == "Upsample" or n.opset < 11:
            rounding = "floor"
        at = nearest(*sizes, how, rounding).astype(np.float32)
        return r.op("take", x, at, axis=axis)
    if mode not in ("linear", "cubic"):
        raise Unsupported(f"mode {mode!r}")
    weights = matrix(*sizes, how, n.attr("cubic_coeff_a", -0.75) if mode == "cubic" else None)
    last = r.rank(x) - 1
    order = [*(k for k in range(last + 1) if k != axis), axis]
    x = r.op("transpose", x, axes=tuple(order)) if axis != last else x
    x = r.op("dot", x, weights.astype(r.dtype(x).numpy), transpose_b=True)
    back = tuple(int(k) for k in np.argsort(order))
    return r.op("transpose", x, axes=back) if axis != last else x


# samples ---------------------------------------------------------------------------------------


@writes("BilinearSampler", "Transpose GridSample")
def write_sampler(w: Writer, x: Call) -> str:
    grid = w.op("Transpose", x.inputs[1], perm=[0, 2, 3, 1])
    return w.op("GridSample", x.inputs[0], grid, mode="bilinear", align_corners=1)


@reads("GridSample")
def read_grid_sample(r: Reader, n: OnnxCall) -> Any:
    mode = n.attr("mode", "bilinear")
    if mode not in ("bilinear", "linear") or n.rank() != 4:
        raise Unsupported(f"mode {mode!r}, {n.rank()} axes")
    n.unsupported(padding_mode="zeros")
    grid = r.op("transpose", n.symbol(1), axes=(0, 3, 1, 2))
    if not n.attr("align_corners", 0):
        height, width = n.dims()[2:]
        if 1 in (height, width):
            raise Unsupported("an image of one row or column without align_corners")
        factors = np.asarray([width / (width - 1), height / (height - 1)], np.float32)
        grid = r.op("broadcast_mul", grid, factors.reshape(1, 2, 1, 1))
    return r.op("BilinearSampler", n.symbol(), grid)


def _affine(w: Writer, x: Call, theta: str, size: Any) -> str:
    """The grid of affine transformations, (batch, 2, rows, columns)."""
    rows, columns = size
    y, across = np.linspace(-1, 1, rows), np.linspace(-1, 1, columns)
    grid = np.stack(np.broadcast_arrays(across[None], y[:, None], 1.0)).reshape(3, -1)
    matrices = w.op("Reshape", theta, w.const([-1, 2, 3]))
    made = w.op("MatMul", matrices, w.const(grid, x.dtype()))
    return w.op("Reshape", made, w.const([0, 2, rows, columns]))


@writes("GridGenerator", "Reshape MatMul")
def write_grid(w: Writer, x: Call) -> str:
    if x.op.transform_type != "affine":
        raise Unsupported(f"transform_type = {x.op.transform_type!r}")
    return _affine(w, x, x.inputs[0], x.op.target_shape)


@writes("SpatialTransformer", "Reshape MatMul Transpose GridSample")
def write_transformer(w: Writer, x: Call) -> str:
    grid = w.op("Transpose", _affine(w, x, x.inputs[1], x.op.target_shape), perm=[0, 2, 3, 1])
    return w.op("GridSample", x.inputs[0], grid, mode="bilinear", align_corners=1)


# regions ---------------------------------------------------------------------------------------


def _rois(w: Writer, name: str) -> tuple[str, str]:
    """The images' numbers and the corners of regions."""
    far = np.iinfo(np.int64).max
    number = w.axes_op("Squeeze", w.slice(name, [1], [0], [1]), [1])
    return w.cast(number, "int64"), w.slice(name, [1], [1], [far])


@writes("_contrib_ROIAlign", "Slice Squeeze Cast RoiAlign")
def write_roi_align(w: Writer, x: Call) -> str:
    op = x.op
    if op.position_sensitive:
        raise Unsupported("position_sensitive = True")
    number, corners = _rois(w, x.inputs[1])
    how = {"output_height": op.pooled_size[0], "output_width": op.pooled_size[1]}
    how |= {"spatial_scale": float(op.spatial_scale), "sampling_ratio": max(op.sample_ratio, 0)}
    mode = "half_pixel" if op.aligned else "output_half_pixel"
    return w.op(
        "RoiAlign", x.inputs[0], corners, number, coordinate_transformation_mode=mode, **how
    )


@reads("RoiAlign")
def read_roi_align(r: Reader, n: OnnxCall) -> Any:
    n.unsupported(mode="avg")
    usual = "half_pixel" if n.opset >= 16 else "output_half_pixel"
    aligned = n.attr("coordinate_transformation_mode", usual) == "half_pixel"
    number = r.op("expand_dims", cast(r, n.symbol(2), n.dtype(1).name), axis=1)
    rois = r.op("Concat", number, n.symbol(1), dim=1, num_args=2)
    size = (n.attr("output_height", 1), n.attr("output_width", 1))
    how = {"spatial_scale": n.attr("spatial_scale", 1.0), "aligned": aligned}
    ratio = n.attr("sampling_ratio", 0) or -1
    return r.op("_contrib_ROIAlign", n.symbol(), rois, pooled_size=size, sample_ratio=ratio, **how)


writes_as("ROIPooling", "MaxRoiPool", pooled_shape="pooled_size", spatial_scale="spatial_scale")


@reads("MaxRoiPool")
def read_roi_pooling(r: Reader, n: OnnxCall) -> Any:
    how = {"pooled_size": tuple(n.need("pooled_shape"))}
    how["spatial_scale"] = n.attr("spatial_scale", 1.0)
    return r.op("ROIPooling", n.symbol(0), n.symbol(1), **how)


# boxes -----------------------------------------------------------------------------------------


@writes("_contrib_MultiBoxPrior", "")
def write_prior(w: Writer, x: Call) -> str:
    """The anchors depend on the image's size alone: a constant."""
    like = np.empty((1, 1, *fixed(x.shape()[2:], "of the image")))
    return w.const(x.op.reference(like), x.dtype())


@writes("_contrib_box_decode", "Split Mul Add Sub Min Exp Concat")
def write_box_decode(w: Writer, x: Call) -> str:
    op, dtype = x.op, x.dtype()

    def number(value: float) -> str:
        return w.const(value, dtype)

    parts = w.many("Split", 4, x.inputs[0], w.const([1] * 4), axis=2)
    a = w.many("Split", 4, x.inputs[1], w.const([1] * 4), axis=2)
    if op.format == "corner":
        sizes = [w.op("Sub", a[k + 2], a[k]) for k in (0, 1)]
        half = number(0.5)
        a = [w.op("Add", a[k], w.op("Mul", sizes[k], half)) for k in (0, 1)] + sizes
    middles, halves = [], []
    for k in (0, 1):
        moved = w.op("Mul", w.op("Mul", parts[k], number((op.std0, op.std1)[k])), a[k + 2])
        middles.append(w.op("Add", moved, a[k]))
        power = w.op("Mul", parts[k + 2], number((op.std2, op.std3)[k]))
        power = w.op("Min", power, number(op.clip)) if op.clip > 0 else power
        halves.append(w.op("Mul", w.op("Mul", w.op("Exp", power), number(0.5)), a[k + 2]))
    low = [w.op("Sub", m, h) for m, h in zip(middles, halves, strict=True)]
    high = [w.op("Add", m, h) for m, h in zip(middles, halves, strict=True)]
    return w.op("Concat", *low, *high, axis=2)


_NMS = "Slice Squeeze Mul Add Sub ReduceMax ReduceMin Equal Where Cast Unsqueeze Concat Shape \
TopK GatherElements Expand NonMaxSuppression Gather ScatterND GatherND Less Greater Pad"


@writes("_contrib_box_nms", _NMS)
def write_box_nms(w: Writer, x: Call) -> str:
    """The rows that are kept get their scores, the others the least one; sorted by that, the
    latter become -1."""
    op = x.op
    if x.rank() != 3 or op.in_format != op.out_format or op.topk == 0:
        raise Unsupported("other than 3 axes, another out_format than in_format, or topk = 0")
    count, width = fixed(x.shape()[1:], "of the boxes")
    data, dtype = x.inputs[0], x.dtype()
    least = w.const(np.finfo(dtype.numpy).min, dtype)

    def column(k: int) -> str:
        return w.axes_op("Squeeze", w.slice(data, [2], [k], [k + 1]), [2])

    score = column(op.score_index)
    valid = w.op("Greater", score, w.const(op.valid_thresh, dtype))
    score = w.op("Where", valid, score, least)
    boxes = w.slice(data, [2], [op.coord_start], [op.coord_start + 4])
    if op.id_index >= 0:
        kind = w.slice(data, [2], [op.id_index], [op.id_index + 1])
        if op.background_id >= 0:
            none = w.op("Equal", w.axes_op("Squeeze", kind, [2]), w.const(op.background_id, dtype))
            score = w.op("Where", none, least, score)
        boxes = boxes if op.force_suppress else _apart(w, boxes, kind, op.in_format, dtype)
    if 0 < op.topk < count:
        best = w.many("TopK", 2, score, w.const([op.topk]), axis=1)[0]
        worst = w.op("ReduceMin", best, axes=[1], keepdims=1)
        score = w.op("Where", w.op("Less", score, worst), least, score)
    scores = w.axes_op("Unsqueeze", score, [1])
    limit, overlap = w.const([count]), w.const([op.overlap_thresh], np.float32)
    lowest, center = w.const([np.finfo("f4").min], np.float32), int(op.in_format == "center")
    inputs = (boxes, scores, limit, overlap, lowest)
    found = w.op("NonMaxSuppression", *inputs, center_point_box=center)
    return _sorted_rows(w, data, score, found, (count, width), dtype)


def _apart(w: Writer, boxes: str, kind: str, form: str, dtype: Any) -> str:
    """Boxes moved so that those of different classes lie apart."""
    top, low = (w.op(k, boxes, keepdims=1) for k in ("ReduceMax", "ReduceMin"))
    reach = w.op("Add", w.op("Sub", top, low), w.const(1, dtype))
    wide = w.op("Mul", w.op("Mul", reach, w.const(2, dtype)), kind)
    moved = [1, 1, 0, 0] if form == "center" else [1, 1, 1, 1]
    return w.op("Add", boxes, w.op("Mul", wide, w.const(moved, dtype)))


def _sorted_rows(w: Writer, data: str, score: str, found: str, sizes: Any, dtype: Any) -> str:
    """Rows of data by score, those that `found` (batch, class, box) names; then rows of -1."""
    count, width = sizes
    least = w.const(np.finfo(dtype.numpy).min, dtype)
    places = w.op("Gather", found, w.const([0, 2]), axis=1)
    nothing = w.op("Expand", least, w.op("Shape", score))
    kept = w.op("ScatterND", nothing, places, w.op("GatherND", score, places))
    best, order = w.many("TopK", 2, kept, w.const([count]), axis=1)
    at = w.op("Expand", w.axes_op("Unsqueeze", order, [2]), w.const([1, 1, width]))
    rows = w.op("GatherElements", data, at, axis=1)
    empty = w.axes_op("Unsqueeze", w.op("Equal", best, least), [2])
    return w.op("Where", empty, w.const(-1, dtype), rows)
