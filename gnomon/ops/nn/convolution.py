"""Convolution: sums of products of `weight` with every window of `data`."""

from __future__ import annotations

from gnomon.dtype import float32
from gnomon.expr import call, ext
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes
from gnomon.ops.nn import window
from gnomon.ops.op import Op, describe, op
from gnomon.ops.param import Dims, param

TUNE = ("fastest", "limited_workspace", "off")
LAYOUTS = ("NCDHW", "NCHW", "NCW", "NDHWC", "NHWC")
FIRST_TO_LAST, LAST_TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)  # the axes of pictures


@op("Convolution", inputs=("data", "weight", "bias"), aliases=("Convolution_v1",))
class Convolution(Op):
    """`weight` laid on every window of `data`, in 1, 2 or 3 dimensions, plus `bias`."""

    kernel: Dims = param(
        low=1, lengths=(1, 2, 3), doc="Size of the window: (w), (h, w), (d, h, w)."
    )
    stride: Dims = param((), low=1, doc="Distance of neighbouring windows; 1 where empty.")
    dilate: Dims = param((), low=1, doc="Distance of a window's elements; 1 where empty.")
    pad: Dims = param((), low=0, doc="Zeros around the data; none where empty.")
    num_filter: int = param(low=1, doc="Channels of the output.")
    num_group: int = param(1, low=1, doc="Groups of channels that see each other.")
    workspace: int = param(1024, low=0, doc="No meaning here.")
    no_bias: bool = param(False, doc="There is no `bias`.")
    cudnn_tune: str | None = param(None, choices=TUNE, doc="No meaning here.")
    cudnn_off: bool = param(False, doc="No meaning here.")
    layout: str | None = param(
        None, choices=LAYOUTS, doc="Order of the axes; channels first if None."
    )

    def check(self) -> None:
        window.per_axis(self, "stride", 1, len(self.kernel))
        window.per_axis(self, "dilate", 1, len(self.kernel))
        window.per_axis(self, "pad", 0, len(self.kernel))
        if self.num_filter % self.num_group:
            raise self.wrong("num_filter", f"a multiple of num_group, {self.num_group}")
        if self.layout and len(self.layout) != len(self.kernel) + 2:
            raise self.wrong("layout", f"a layout of {len(self.kernel) + 2} axes")

    def arguments(self) -> tuple[str, ...]:
        return ("data", "weight") if self.no_bias else ("data", "weight", "bias")

    @property
    def order(self) -> window.Sizes:
        """The axes of `data` in the order N, C, space."""
        return window.channels_first(self.layout or window.DEFAULT_LAYOUT[len(self.kernel)])

    @property
    def weight_order(self) -> window.Sizes:
        """The axes of `weight` in the order of filters, C, kernel."""
        return self.order

    @property
    def places(self) -> tuple[window.Sizes, window.Sizes, window.Sizes]:
        """Stride, pad and dilate, one number an axis."""
        n = len(self.kernel)
        stride, pad = window.per_axis(self, "stride", 1, n), window.per_axis(self, "pad", 0, n)
        return stride, pad, window.per_axis(self, "dilate", 1, n)

    def shapes(self, s: Shapes) -> None:
        if not self.no_bias:
            s["bias"] = (self.num_filter,)
        back = window.inverse(self.order)
        data = s.rank("data", len(self.kernel) + 2, reason=f" for kernel={self.kernel}")
        n, c, *space = window.ordered(data, self.order)
        if c != UNKNOWN and c % self.num_group:
            raise s.refuse("data", f"channels in {self.num_group} groups", f"{c} channels")
        weight = self.num_filter, c // self.num_group, *self.kernel
        s["weight"] = window.ordered(weight, window.inverse(self.weight_order))
        inner = window.ordered(s.need("weight"), self.weight_order)[1]
        sizes = self.output_sizes(s, space)
        s["output"] = window.ordered((n, self.num_filter, *sizes), back)
        n, _, *sizes = window.ordered(s.need("output"), self.order)
        space = self.input_sizes(space, sizes)
        s["data"] = window.ordered((n, inner * self.num_group, *space), back)

    def input_sizes(self, space: list[int], sizes: list[int]) -> list[int]:
        """Spatial sizes of the data, from those of the output where windows move by 1."""
        stride, pad, dilate = self.places
        rows = zip(space, sizes, window.reach(self.kernel, dilate), stride, pad, strict=True)
        return [
            out + span - 1 - 2 * p if size == UNKNOWN != out and step == 1 else size
            for size, out, span, step, p in rows
        ]

    def output_sizes(self, s: Shapes, space: list[int]) -> list[int]:
        """Spatial sizes of the output; ShapeError where the window does not fit."""
        stride, pad, dilate = self.places
        spans = window.reach(self.kernel, dilate)
        for size, span, p in zip(space, spans, pad, strict=True):
            if size != UNKNOWN and size + 2 * p < span:
                expected = f"sizes of at least the window's, {spans}"
                raise s.refuse("data", expected, f"{tuple(space)} with padding {pad}")
        rows = zip(space, spans, stride, pad, strict=True)
        return [window.places(*row) for row in rows]

    def free(self, data: Shape, weight: Shape, bias: Shape = ()) -> Free:
        n, c, *space = window.ordered(data, self.order)
        return Free((n,), (c, *weight), spans=tuple(space))

    def forward(self, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
        x, w = window.turned(data, self.order), window.turned(weight, self.weight_order)
        channel = self.order[1]
        # channels first, the bias goes into the kernel of what stands behind
        within = bias if channel > 1 and data.dtype is float32 else None
        y: Expr = call.convolution(x, w, *self.places, self.num_group, bias=within)
        y = window.turned(y, window.inverse(self.order))
        if bias is None or bias is within:
            return y
        return y + ext.broadcast_axis(bias, y.shape, channel)


class WeightFirst(Convolution):
    """A convolution whose weight is (filters, C, kernel...), whatever the layout of its data.

    No operator of the users: what a pass makes of one whose data it lays otherwise.
    """

    @property
    def weight_order(self) -> window.Sizes:
        return tuple(range(len(self.kernel) + 2))


describe(WeightFirst)
