"""Layers with weights: fully connected, convolution, its transpose; pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.onnx.families.shape import padded
from gnomon.onnx.fold import bounded
from gnomon.onnx.reader import OnnxCall, Reader
from gnomon.onnx.table import Unsupported, reads, writes
from gnomon.onnx.writer import Call, Writer, fixed
from gnomon.ops.nn import window

Sizes = tuple[int, ...]


@writes("FullyConnected", "Flatten Gemm Transpose MatMul Add")
def write_fully_connected(w: Writer, x: Call) -> str:
    data, weight, *bias = x.inputs
    if x.op.flatten or x.rank() == 2:
        data = w.op("Flatten", data) if x.rank() != 2 else data
        return w.op("Gemm", data, weight, *bias, transB=1)
    product = w.op("MatMul", data, w.op("Transpose", weight, perm=[1, 0]))
    return w.op("Add", product, *bias) if bias else product


@reads("Gemm")
def read_gemm(r: Reader, n: OnnxCall) -> Any:
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    a, b, ta, tb = n.symbol(0), n.value(1).array, n.attr("transA", 0), n.attr("transB", 0)
    plain = alpha == 1 and not ta and (beta == 1 or not n.has(2))
    bias = n.rank(2) == 1 if n.has(2) else True
    if plain and b is not None and b.ndim == 2 and bias:
        hidden = b.shape[0] if tb else b.shape[1]
        if not n.has(2) or n.dims(2) == (hidden,):
            weight = n.symbol(1) if tb else r.variable(f"{n.value(1).name}_T", b.T)
            extra = [n.symbol(2)] if n.has(2) else []
            given = {"num_hidden": hidden, "no_bias": not extra, "flatten": False}
            return r.op("FullyConnected", a, weight, *extra, **given)
    product = r.op("dot", a, n.symbol(1), transpose_a=bool(ta), transpose_b=bool(tb))
    product = r.op("_mul_scalar", product, scalar=alpha) if alpha != 1 else product
    if not n.has(2):
        return product
    c = n.symbol(2)
    c = r.op("_mul_scalar", c, scalar=beta) if beta != 1 else c
    return r.op("broadcast_add", product, c)


# windows ---------------------------------------------------------------------------------------


def first(w: Writer, name: str, order: Sequence[int]) -> str:
    """A tensor with its axes in another order; itself where they are."""
    same = list(order) == list(range(len(order)))
    return name if same else w.op("Transpose", name, perm=list(order))


@writes("Convolution", "Conv Transpose")
def write_convolution(w: Writer, x: Call) -> str:
    op, (data, weight, *bias) = x.op, x.inputs
    stride, pad, dilate = op.places
    how = {"strides": stride, "pads": (*pad, *pad), "dilations": dilate, "group": op.num_group}
    data, weight = first(w, data, op.order), first(w, weight, op.order)
    made = w.op("Conv", data, weight, *bias, kernel_shape=op.kernel, **how)
    return first(w, made, window.inverse(op.order))


@writes("Deconvolution", "ConvTranspose")
def write_deconvolution(w: Writer, x: Call) -> str:
    return transposed(w, x, x.op, x.inputs)


def transposed(w: Writer, x: Call, op: Any, inputs: Sequence[str]) -> str:
    """The transpose of a convolution that `op` describes."""
    n = len(op.kernel)
    if any(op.target_shape):
        pad, adj = op.cut(op.spread(x.dims()[2:]))
    else:
        pad, adj = (window.per_axis(op, name, 0, n) for name in ("pad", "adj"))
    how = {
        "strides": window.per_axis(op, "stride", 1, n),
        "dilations": window.per_axis(op, "dilate", 1, n),
        "pads": (*pad, *pad),
        "output_padding": adj if any(adj) else None,
        "group": op.num_group,
    }
    return w.op("ConvTranspose", *inputs, kernel_shape=op.kernel, **how)


class Windows:
    """The windows of a convolution or pooling of ONNX: sizes along each axis."""

    def __init__(self, n: OnnxCall, kernel: Sequence[int], space: Sequence[int]) -> None:
        count = len(kernel)
        self.kernel = tuple(kernel)
        self.stride = self._each(n, "strides", 1, count)
        self.dilate = self._each(n, "dilations", 1, count)
        self.reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, self.dilate, strict=True))
        self.space = tuple(space)
        pads = n.attr("pads", [0] * (2 * count))
        if len(pads) != 2 * count or len(space) != count:
            raise Unsupported(f"{len(pads)} pads, of {count} axes")
        self.begin, self.end = tuple(pads[:count]), tuple(pads[count:])
        auto = n.attr("auto_pad", "NOTSET")
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            self._same(auto == "SAME_LOWER")
        elif auto == "VALID":
            self.begin = self.end = (0,) * count

    @staticmethod
    def _each(n: OnnxCall, name: str, default: int, count: int) -> Sizes:
        given = tuple(n.attr(name) or (default,) * count)
        if len(given) != count or min(given) < 1:
            raise Unsupported(f"{name} = {given}, of {count} axes")
        return given

    def _same(self, lower: bool) -> None:
        if -1 in self.space:
            raise Unsupported("auto_pad of sizes that are not known: give input_shapes")
        rows = zip(self.space, self.stride, self.reach, strict=True)
        total = [max((-(-d // s) - 1) * s + k - d, 0) for d, s, k in rows]
        small, large = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        self.begin, self.end = (large, small) if lower else (small, large)

    @property
    def even(self) -> bool:
        """Whether both ends are padded alike."""
        return self.begin == self.end and min(self.begin) >= 0

    def counts(self, ceil: bool) -> list[int]:
        """How many windows there are along each axis; none begins in the padding at the end."""
        if -1 in self.space:
            raise Unsupported("windows of sizes that are not known: give input_shapes")
        found = []
        rows = zip(self.space, self.begin, self.end, self.reach, self.stride, strict=True)
        for d, a, b, k, s in rows:
            places = -(-(d + a + b - k) // s) + 1 if ceil else (d + a + b - k) // s + 1
            found.append(places - 1 if ceil and (places - 1) * s >= d + a else places)
        return found

    def widths(self, counts: Sequence[int]) -> list[tuple[int, int]]:
        """What is added along all axes, so that so many windows fit and nothing is left."""
        rows = zip(counts, self.space, self.begin, self.reach, self.stride, strict=True)
        return [(0, 0), (0, 0), *((a, (c - 1) * s + k - d - a) for c, d, a, k, s in rows)]


@reads("Conv")
def read_conv(r: Reader, n: OnnxCall) -> Any:
    x, weight = n.symbol(), n.symbol(1)
    shape = n.dims(1)
    kernel = n.attr("kernel_shape", list(shape[2:]))
    how = Windows(n, kernel, (n.shape() or (-1,) * len(shape))[2:])
    pad = how.begin
    if not how.even:
        ends = [(0, 0), (0, 0), *zip(how.begin, how.end, strict=True)]
        x, pad = padded(r, x, ends, "constant", 0.0), (0,) * len(kernel)
    given = {"stride": how.stride, "dilate": how.dilate, "pad": pad}
    given |= {"num_filter": shape[0], "num_group": n.attr("group", 1), "no_bias": not n.has(2)}
    inputs = [x, weight, *([n.symbol(2)] if n.has(2) else [])]
    return r.op("Convolution", *inputs, kernel=tuple(kernel), **given)


@reads("ConvTranspose")
def read_conv_transpose(r: Reader, n: OnnxCall) -> Any:
    shape, group = n.dims(1), n.attr("group", 1)
    kernel = n.attr("kernel_shape", list(shape[2:]))
    how = Windows(n, kernel, (1,) * len(kernel))
    count, auto = len(kernel), n.attr("auto_pad", "NOTSET")
    adj = tuple(n.attr("output_padding") or (0,) * count)
    begin, end = how.begin, how.end
    wanted = n.attr("output_shape")
    if wanted is not None or auto.startswith("SAME"):
        space = n.dims()[2:]
        wanted = wanted or [d * s for d, s in zip(space, how.stride, strict=True)]
        rows = zip(space, how.stride, how.reach, adj, wanted[-count:], strict=True)
        total = [max((d - 1) * s + k + a - t, 0) for d, s, k, a, t in rows]
        half = tuple(t // 2 for t in total)
        rest = tuple(t - h for t, h in zip(total, half, strict=True))
        begin, end = (half, rest) if auto == "SAME_UPPER" else (rest, half)
        rows = zip(space, how.stride, how.reach, begin, end, wanted[-count:], strict=True)
        adj = tuple(t - ((d - 1) * s + k - a - b) for d, s, k, a, b, t in rows)
    given = {"stride": how.stride, "dilate": how.dilate, "num_group": group}
    given |= {"num_filter": shape[1] * group, "no_bias": not n.has(2)}
    inputs = [n.symbol(), n.symbol(1), *([n.symbol(2)] if n.has(2) else [])]
    if begin == end and min((*begin, *adj)) >= 0:
        given |= {"pad": begin, "adj": adj}
        return r.op("Deconvolution", *inputs, kernel=tuple(kernel), **given)
    whole = r.op(
        "Deconvolution",
        *inputs,
        kernel=tuple(kernel),
        adj=tuple(map(max, adj, [0] * count)),
        **given,
    )
    low = [max(-a, 0) for a in adj]
    stop = tuple(-(b + c) or None for b, c in zip(end, low, strict=True))
    return r.op("slice", whole, begin=(None, None, *begin), end=(None, None, *stop))


# pooling ---------------------------------------------------------------------------------------

_POOL = {"max": "MaxPool", "avg": "AveragePool", "lp": "LpPool", "sum": "AveragePool"}


@writes("Pooling Pooling_v1", "MaxPool AveragePool LpPool Global Transpose Mul ReduceSum Pad")
def write_pooling(w: Writer, x: Call) -> str:
    op, rank = x.op, x.rank()
    order = op.order(rank)
    data = first(w, x.inputs[0], order)
    if op.name == "Pooling_v1" and any(op.pad) and op.pool_type == "max" and not op.global_pool:
        raise Unsupported("Pooling_v1 of padded maxima, where padding counts as 0")
    made = _global(w, x, data) if op.global_pool else _pooled(w, x, data, order)
    return first(w, made, window.inverse(order))


def _global(w: Writer, x: Call, data: str) -> str:
    kind = x.op.pool_type
    if kind == "sum":
        return w.axes_op("ReduceSum", data, range(2, x.rank()), keepdims=1)
    return w.op(f"Global{_POOL[kind]}", data, p=x.op.p_value if kind == "lp" else None)


def _pooled(w: Writer, x: Call, data: str, order: Sizes) -> str:
    op, kind = x.op, x.op.pool_type
    if kind == "lp" and op.p_value == 3:
        raise Unsupported("pool_type lp with p_value 3: MXNet keeps signs, ONNX does not")
    kernel, stride, pad = op.windows((0,) * len(op.kernel))
    given: dict[str, Any] = {"kernel_shape": kernel, "strides": stride}
    counted = kind == "sum" or (kind == "avg" and op.count_include_pad is not False)
    if kind == "lp":
        given["p"] = op.p_value
    ends = _overhang(x, order, kernel, stride, pad) if op.full or op.same else pad
    if op.same and kind != "max":
        raise Unsupported(f"pooling_convention same with pool_type {kind}")
    beyond = any(e >= k for e, k in zip(ends, kernel, strict=True))
    if kind == "avg" and ends != pad and (counted or beyond):
        return _uneven(w, x, data, order, (kernel, stride, pad, ends))
    if beyond:
        data = _wider(w, x, data, pad, ends)
        pad = ends = (0,) * len(pad)
    if counted:
        given["count_include_pad"] = 1
    made = w.op(_POOL[kind], data, pads=(*pad, *ends), **given)
    return w.op("Mul", made, w.const(math.prod(kernel), x.dtype())) if kind == "sum" else made


def _wider(w: Writer, x: Call, data: str, pad: Sizes, ends: Sizes) -> str:
    """Data with what pooling pads, as elements of its own."""
    fill = -math.inf if x.op.pool_type == "max" else 0
    return w.op("Pad", data, w.const((0, 0, *pad, 0, 0, *ends)), w.const(fill, x.dtype()))


def _uneven(w: Writer, x: Call, data: str, order: Sizes, how: tuple[Sizes, ...]) -> str:
    """Means of windows that hang over the end: those of ONNX, times what their elements count."""
    kernel, stride, pad, ends = how
    space = fixed([x.shape()[a] for a in order[2:]], "of the image")
    places = fixed([x.out_shape()[a] for a in order[2:]], "of the output")
    rows = zip(places, space, pad, pad, kernel, (1,) * len(kernel), stride, strict=True)
    count = elements(list(rows), x.op.count_include_pad is not False)
    with np.errstate(divide="ignore"):
        factor = np.where(count > 0, math.prod(kernel) / count, 0)
    made = w.op("AveragePool", _wider(w, x, data, pad, ends), kernel_shape=kernel, strides=stride)
    return w.op("Mul", made, w.const(factor, x.dtype()))


def _overhang(x: Call, order: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes) -> Sizes:
    """What has to be added at the end for the last windows to fit."""
    space = fixed([x.shape()[a] for a in order[2:]], "of the image")
    places = fixed([x.out_shape()[a] for a in order[2:]], "of the output")
    rows = zip(space, places, kernel, stride, pad, strict=True)
    return tuple(max((n - 1) * s + k - d - p, 0) for d, n, k, s, p in rows)


def _read_global(kind: str) -> Any:
    def read(r: Reader, n: OnnxCall) -> Any:
        x, rank = n.symbol(), n.rank()
        more = {"p_value": n.attr("p", 2)} if kind == "lp" else {}
        if not 3 <= rank <= 5:
            raise Unsupported(f"{rank - 2} axes of space")
        kernel = (1,) * (rank - 2)
        return r.op("Pooling", x, global_pool=True, pool_type=kind, kernel=kernel, **more)

    return read


for _kind in ("max", "avg", "lp"):
    reads(f"Global{_POOL[_kind]}")(_read_global(_kind))


def _plain(r: Reader, n: OnnxCall, how: Windows, kind: str, **more: Any) -> Any:
    """`Pooling` where its windows are those of ONNX; None where they are not."""
    ceil = bool(n.attr("ceil_mode", 0))
    if not how.even or set(how.dilate) != {1}:
        return None
    if any(p >= k for p, k in zip(how.begin, how.kernel, strict=True)):
        return None
    if ceil:
        rows = zip(how.space, how.begin, how.reach, how.stride, strict=True)
        mine = [-(-(d + 2 * p - k) // s) + 1 for d, p, k, s in rows]
        if mine != how.counts(True):
            return None
    given = {"kernel": how.kernel, "stride": how.stride, "pad": how.begin, "pool_type": kind}
    convention = "full" if ceil else "valid"
    return r.op("Pooling", n.symbol(), pooling_convention=convention, **given, **more)


def columns(r: Reader, x: Any, how: Windows, counts: Sequence[int]) -> Any:
    """The elements of every window of padded data, (batch, channels, window, places)."""
    found = r.op("im2col", x, kernel=how.kernel, stride=how.stride, dilate=how.dilate)
    batch, channels = r.shape(x)[:2]
    return r.op("Reshape", found, shape=(batch, channels, math.prod(how.kernel), math.prod(counts)))


def _windows(n: OnnxCall) -> tuple[Windows, list[int]]:
    how = Windows(n, n.need("kernel_shape"), (n.shape() or ())[2:])
    return how, how.counts(bool(n.attr("ceil_mode", 0)))


def _summed(r: Reader, x: Any, how: Windows, counts: Sequence[int], join: str) -> Any:
    """The sums or maxima of all windows of padded data."""
    if set(how.dilate) != {1}:
        found = r.op(join, columns(r, x, how, counts), axis=2)
        return r.op("Reshape", found, shape=(*r.shape(x)[:2], *counts))
    return r.op("Pooling", x, kernel=how.kernel, stride=how.stride, pool_type=join)


@reads("MaxPool")
def read_max_pool(r: Reader, n: OnnxCall) -> Any:
    if n.outputs > 1:
        raise Unsupported("the output Indices")
    if n.dtype().kind != "f":
        raise Unsupported(f"maxima of {n.dtype()}")
    how = Windows(n, n.need("kernel_shape"), (n.shape() or ())[2:])
    found = _plain(r, n, how, "max")
    if found is not None:
        return found
    how, counts = _windows(n)
    wide = padded(r, n.symbol(), how.widths(counts), "constant", -math.inf)
    return _summed(r, wide, how, counts, "max")


@reads("AveragePool")
def read_average_pool(r: Reader, n: OnnxCall) -> Any:
    include = bool(n.attr("count_include_pad", 0))
    how = Windows(n, n.need("kernel_shape"), (n.shape() or ())[2:])
    found = _plain(r, n, how, "avg", count_include_pad=include)
    if found is not None:
        return found
    how, counts = _windows(n)
    wide = padded(r, n.symbol(), how.widths(counts), "constant", 0.0)
    axes = (counts, how.space, how.begin, how.end, how.kernel, how.dilate, how.stride)
    share = 1 / elements(list(zip(*axes, strict=True)), include)
    return r.op("broadcast_mul", _summed(r, wide, how, counts, "sum"), share[None, None])


def elements(rows: Sequence[Sizes], include: bool) -> Any:
    """How many elements of each window count: for each axis how many windows there are, its size,
    what is padded at either end, and kernel, dilation and stride."""
    total: Any = np.ones((), np.float32)
    bounded([row[0] for row in rows])
    for c, d, a, b, k, dilate, s in rows:
        places = np.arange(c)[:, None] * s + np.arange(k) * dilate - a
        low, high = (-a, d + b) if include else (0, d)
        total = total[..., None] * ((places >= low) & (places < high)).sum(1)
    return total.astype(np.float32)


@reads("LpPool")
def read_lp_pool(r: Reader, n: OnnxCall) -> Any:
    p = float(n.attr("p", 2))
    how, counts = _windows(n)
    powers = r.op("_power_scalar", r.op("abs", n.symbol()), scalar=p)
    wide = padded(r, powers, how.widths(counts), "constant", 0.0)
    return r.op("_power_scalar", _summed(r, wide, how, counts, "sum"), scalar=1 / p)
