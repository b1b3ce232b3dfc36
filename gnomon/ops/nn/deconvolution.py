"""Deconvolution: what a convolution's data would receive as its gradient, as a layer."""

from __future__ import annotations

from gnomon.expr import ext
from gnomon.expr.call.conv import ConvolutionData, Geometry
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes
from gnomon.ops.nn import window
from gnomon.ops.nn.convolution import LAYOUTS, TUNE
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param


@op("Deconvolution", inputs=("data", "weight", "bias"))
class Deconvolution(Op):
    """`weight` added up at every place, times the element of `data` there, plus `bias`."""

    kernel: Dims = param(
        low=1, lengths=(1, 2, 3), doc="Size of the window: (w), (h, w), (d, h, w)."
    )
    stride: Dims = param((), low=1, doc="Distance of neighbouring windows; 1 where empty.")
    dilate: Dims = param((), low=1, doc="Distance of a window's elements; 1 where empty.")
    pad: Dims = param((), low=0, doc="What is cut off around the output; nothing where empty.")
    adj: Dims = param((), low=0, doc="What is added at the end of the output; nothing where empty.")
    target_shape: Dims = param(
        (), low=0, doc="Sizes of the output, instead of `pad` and `adj`; zeros alone say nothing."
    )
    num_filter: int = param(low=1, doc="Channels of the output.")
    num_group: int = param(1, low=1, doc="Groups of channels that see each other.")
    workspace: int = param(512, low=0, doc="No meaning here.")
    no_bias: bool = param(True, doc="There is no `bias`.")
    cudnn_tune: str | None = param(None, choices=TUNE, doc="No meaning here.")
    cudnn_off: bool = param(False, doc="No meaning here.")
    layout: str | None = param(None, choices=LAYOUTS, doc="Only the default: channels first.")

    def check(self) -> None:
        for name, default in (("stride", 1), ("dilate", 1), ("pad", 0), ("adj", 0)):
            window.per_axis(self, name, default, len(self.kernel))
        if any(self.target_shape):
            window.per_axis(self, "target_shape", 1, len(self.kernel))
        elif not self.adds_no_window(self.adj):
            raise self.wrong("adj", f"numbers below stride, {self.strides}")
        if self.layout not in (None, window.DEFAULT_LAYOUT[len(self.kernel)]):
            raise self.wrong("layout", "channels first")
        if self.num_filter % self.num_group:
            raise self.wrong("num_filter", f"a multiple of num_group, {self.num_group}")

    @property
    def strides(self) -> window.Sizes:
        """The distance of windows along each axis."""
        return window.per_axis(self, "stride", 1, len(self.kernel))

    def adds_no_window(self, adj: window.Sizes) -> bool:
        """Whether no more windows fit into an output with so much more at its end."""
        return all(a < s for a, s in zip(adj, self.strides, strict=False))

    def arguments(self) -> tuple[str, ...]:
        return ("data", "weight") if self.no_bias else ("data", "weight", "bias")

    def spread(self, space: tuple[int, ...]) -> list[int]:
        """Sizes of the output before anything is cut off or added."""
        n = len(self.kernel)
        spans = window.reach(self.kernel, window.per_axis(self, "dilate", 1, n))
        rows = zip(space, self.strides, spans, strict=True)
        return [(d - 1) * s + k for d, s, k in rows]

    def cut(self, whole: list[int]) -> tuple[window.Sizes, window.Sizes]:
        """What is cut off on either side, and what is added at the end."""
        if any(self.target_shape):
            rest = [w - t for w, t in zip(whole, self.target_shape, strict=True)]
            return tuple((r + 1) // 2 for r in rest), tuple(r % 2 for r in rest)
        n = len(self.kernel)
        return window.per_axis(self, "pad", 0, n), window.per_axis(self, "adj", 0, n)

    def shapes(self, s: Shapes) -> None:
        if not self.no_bias:
            s["bias"] = (self.num_filter,)
        reason = f" for kernel={self.kernel}"
        n, c, *space = s.rank("data", len(self.kernel) + 2, reason=reason)
        if c != UNKNOWN and c % self.num_group:
            raise s.refuse("data", f"channels in {self.num_group} groups", f"{c} channels")
        s["weight"] = (c, self.num_filter // self.num_group, *self.kernel)
        whole = self.spread(tuple(space))
        sizes = [UNKNOWN] * len(space)
        if UNKNOWN not in whole:
            pad, adj = self.cut(whole)
            sizes = [w - 2 * p + a for w, p, a in zip(whole, pad, adj, strict=True)]
            if min(sizes) < 1 or min(pad) < 0:
                raise s.refuse("data", "sizes that leave something after pad", tuple(space))
            if not self.adds_no_window(adj):
                expected = f"sizes from which target_shape {self.target_shape} is cut evenly"
                raise s.refuse("data", expected, tuple(space))
        s["output"] = (n, self.num_filter, *sizes)
        s["data"] = (s.need("output")[0], s.need("weight")[0], *space)

    def free(self, data: Shape, weight: Shape, bias: Shape = ()) -> Free:
        if any(self.target_shape):  # what is cut off follows from the sizes
            return Free(data[:1], (*data[1:], *weight))
        return Free(data[:1], (data[1], *weight), spans=data[2:])

    def forward(self, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
        n = len(self.kernel)
        whole = self.spread(data.shape[2:])
        pad, adj = self.cut(whole)
        how = Geometry(
            self.strides,
            pad,
            window.per_axis(self, "dilate", 1, n),
            self.num_group,
        )
        space = tuple(w - 2 * p + a for w, p, a in zip(whole, pad, adj, strict=True))
        y: Expr = ConvolutionData(data, weight, how, space)
        return y if bias is None else y + ext.broadcast_axis(bias, y.shape, 1)
