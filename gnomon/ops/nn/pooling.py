"""Pooling: the maximum, mean, sum or p-norm of every window."""

from __future__ import annotations

import math

from gnomon.base import ParamError, complaint
from gnomon.dtype import int64
from gnomon.expr import call, ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.create import full
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes
from gnomon.ops.nn import window
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param

LAYOUTS = ("NCDHW", "NCHW", "NCW", "NDHWC", "NHWC", "NWC")


@op("Pooling")
class Pooling(Op):
    """What `pool_type` makes of every window of `data`, in 1, 2 or 3 dimensions."""

    kernel: Dims = param((), low=1, doc="Size of the window: (w), (h, w) or (d, h, w).")
    pool_type: str = param("max", choices=("avg", "lp", "max", "sum"), doc="What is made of it.")
    global_pool: bool = param(
        False, doc="One window over everything; kernel, stride, pad are unused."
    )
    cudnn_off: bool = param(False, doc="No meaning here.")
    pooling_convention: str = param(
        "valid",
        choices=("full", "same", "valid"),
        doc="Whether sizes are rounded down (valid) or up (full, same).",
    )
    stride: Dims = param((), low=1, doc="Distance of neighbouring windows; 1 where empty.")
    pad: Dims = param((), low=0, doc="Elements around the data; none where empty.")
    p_value: int | None = param(None, choices=(1, 2, 3), doc="The p of lp.")
    count_include_pad: bool | None = param(None, doc="Whether avg counts padding; it does if None.")
    layout: str | None = param(
        None, choices=LAYOUTS, doc="Order of the axes; channels first if None."
    )

    def check(self) -> None:
        if self.pool_type == "lp" and self.p_value is None:
            raise ParamError(complaint(self.name, "p_value", "1, 2 or 3 for lp", None))
        if self.global_pool:
            return
        if not 1 <= len(self.kernel) <= 3:
            raise self.wrong("kernel", "1, 2 or 3 numbers")
        window.per_axis(self, "stride", 1, len(self.kernel))
        pad = self.pads(len(self.kernel))
        adds = self.pool_type in ("sum", "lp")  # a window without elements has a sum, 0
        if not adds and any(p >= k for p, k in zip(pad, self.kernel, strict=True)):
            raise ParamError(complaint(self.name, "pad", f"less than kernel, {self.kernel}", pad))
        if self.same and any(self.pad):
            raise ParamError(complaint(self.name, "pad", "0 where windows are the same", pad))

    def pads(self, count: int) -> window.Sizes:
        """The padding along each axis; further numbers do not count, as in MXNet."""
        return self.pad[:count] if len(self.pad) > count else window.per_axis(self, "pad", 0, count)

    def order(self, ndim: int) -> window.Sizes:
        """The axes of `data` in the order N, C, space."""
        return window.channels_first(self.layout or window.DEFAULT_LAYOUT[ndim - 2])

    def windows(self, space: window.Sizes) -> tuple[window.Sizes, window.Sizes, window.Sizes]:
        """Kernel, stride and pad for data of these spatial sizes."""
        n = len(space)
        if self.global_pool:
            return space, (1,) * n, (0,) * n
        return self.kernel, window.per_axis(self, "stride", 1, n), self.pads(n)

    @property
    def full(self) -> bool:
        """Whether a last window may hang over the end."""
        return self.pooling_convention == "full"

    @property
    def same(self) -> bool:
        """Whether windows begin at all multiples of the stride."""
        return self.pooling_convention == "same" and not self.global_pool

    def shapes(self, s: Shapes) -> None:
        ranks = (3, 4, 5) if self.global_pool else (len(self.kernel) + 2,)
        reason = "" if self.global_pool else f" for kernel={self.kernel}"
        data = s.rank("data", *ranks, reason=reason)
        order = self.order(len(data))
        n, c, *space = window.ordered(data, order)
        rows = zip(space, *self.windows(tuple(space)), strict=True)
        sizes = [1 if self.global_pool else self.places(s, *row) for row in rows]
        s["output"] = window.ordered((n, c, *sizes), window.inverse(order))
        n, c, *_ = window.ordered(s.need("output"), order)
        s["data"] = window.ordered((n, c, *space), window.inverse(order))

    def places(self, s: Shapes, size: int, kernel: int, stride: int, pad: int) -> int:
        """How many windows there are along an axis."""
        if size == UNKNOWN:
            return UNKNOWN
        if self.same:
            return -(-size // stride)
        if size + 2 * pad < kernel:
            expected = f"sizes of at least the window's, {self.kernel}"
            raise s.refuse("data", expected, f"{size} with padding {pad}")
        over = stride - 1 if self.full else 0
        return (size + 2 * pad - kernel + over) // stride + 1

    def free(self, data: Shape) -> Free:
        n, c, *space = window.ordered(data, self.order(len(data)))
        return Free((n,), (c,), spans=tuple(space))

    def forward(self, data: Expr) -> Expr:
        order = self.order(data.ndim)
        mean = self.pool_type == "avg" and data.dtype.kind in "iu"  # whose sums have to be held
        x = window.turned(cast(data, int64) if mean else data, order)
        kernel, stride, pad = self.windows(x.shape[2:])
        found = window.turned(self.pooled(x, kernel, stride, pad), window.inverse(order))
        return cast(found, data.dtype)

    def pooled(
        self, x: Expr, kernel: window.Sizes, stride: window.Sizes, pad: window.Sizes
    ) -> Expr:
        """The pooling of data with channels first."""
        if self.same:
            return self.same_windows(x, kernel, stride)
        if self.pool_type == "max":
            return call.max_pool(x, kernel, stride, pad, self.full)
        if self.pool_type == "avg":
            counted = self.count_include_pad is not False
            return call.avg_pool(x, kernel, stride, pad, self.full, counted)
        if self.pool_type == "sum":
            return self.sums(x, kernel, stride, pad)
        p = self.p_value or 1
        if p == 1:  # as in MXNet, odd powers keep their signs
            return self.sums(x, kernel, stride, pad)
        total = self.sums(x * x if p == 2 else x * x * x, kernel, stride, pad)
        empty = fn.eq(total, 0)  # whose root has no derivative
        root = (fn.sqrt if p == 2 else fn.cbrt)(fn.where(empty, 1, total))
        return fn.where(empty, 0, root)

    def same_windows(self, x: Expr, kernel: window.Sizes, stride: window.Sizes) -> Expr:
        """The pooling of windows that begin at all multiples of the stride, cut off at the end."""
        given = {name: getattr(self, name) for name in self.fields}
        if self.pool_type == "avg" and x.dtype.kind != "f":  # which holds no part of a window
            given["pool_type"] = "sum"
        plain = Pooling(**{**given, "pooling_convention": "valid", "pad": ()})
        none = (0,) * len(kernel)
        if self.pool_type == "max":
            lowest = float("-inf") if x.dtype.kind == "f" else x.dtype.limits[0]
            return plain.pooled(fitted(x, kernel, stride, lowest), kernel, stride, none)
        found = plain.pooled(fitted(x, kernel, stride, 0), kernel, stride, none)
        if self.pool_type != "avg":
            return found
        ones = fitted(full((1, 1, *x.shape[2:]), 1, x.dtype), kernel, stride, 0)
        inside = plain.pooled(ones, kernel, stride, none)  # what part of a window is data
        return found / ext.broadcast_to(inside, found.shape)

    def sums(self, x: Expr, kernel: window.Sizes, stride: window.Sizes, pad: window.Sizes) -> Expr:
        """The sum of every window; of one that is everything by one kernel for all sizes."""
        if self.global_pool:
            return ext.reduce(x, "sum", range(2, x.ndim), keepdims=True)
        return ext.pool(x, "sum", kernel, stride, pad, self.full)


def fitted(x: Expr, kernel: window.Sizes, stride: window.Sizes, fill: float) -> Expr:
    """`x`, whose spatial axes are cut off, or go on with `fill`, where the last window ends."""
    rows = zip(x.shape[2:], kernel, stride, strict=True)
    ends = [(-(-n // s) - 1) * s + k for n, k, s in rows]
    kept = (*x.shape[:2], *map(min, x.shape[2:], ends))
    after = (0, 0, *(e - n for e, n in zip(ends, kept[2:], strict=True)))
    return ext.pad(ext.slice_(x, (0,) * x.ndim, kept), (0,) * x.ndim, after, fill)


@op("Pooling_v1")
class PoolingV1(Pooling):
    """`Pooling` as it once was: padding counts as 0, and means divide by the whole window."""

    pool_type: str = param("max", choices=("avg", "max", "sum"), doc="What is made of it.")
    pooling_convention: str = param(
        "valid", choices=("full", "valid"), doc="Whether sizes are rounded down or up (full)."
    )
    cudnn_off = False
    p_value = count_include_pad = layout = None
    leading = ("kernel", "pool_type", "global_pool", "pooling_convention")

    def pooled(
        self, x: Expr, kernel: window.Sizes, stride: window.Sizes, pad: window.Sizes
    ) -> Expr:
        if self.pool_type == "max":
            none, around = (0,) * len(pad), (0, 0, *pad)
            return super().pooled(ext.pad(x, around, around), kernel, stride, none)
        if self.pool_type == "sum":
            return super().pooled(x, kernel, stride, pad)
        total = type(self)(**{**self._given, "pool_type": "sum"})
        return total.pooled(x, kernel, stride, pad) / math.prod(kernel)
