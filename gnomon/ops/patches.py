"""Windows of images as columns, and columns as images."""

from __future__ import annotations

from gnomon.expr import ext
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Shapes, times
from gnomon.ops.nn import window
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param


class Patches(Op):
    """What both directions share: the windows."""

    kernel: Dims = param(
        low=1, lengths=(1, 2, 3), doc="Size of the window: (w), (h, w), (d, h, w)."
    )
    stride: Dims = param((), low=1, doc="Distance of neighbouring windows; 1 where empty.")
    dilate: Dims = param((), low=1, doc="Distance of neighbouring elements; 1 where empty.")
    pad: Dims = param((), low=0, doc="Elements around the data; none where empty.")

    @property
    def windows(self) -> tuple[window.Sizes, window.Sizes, window.Sizes]:
        """Stride, dilate and pad."""
        n = len(self.kernel)
        stride, dilate = (window.per_axis(self, name, 1, n) for name in ("stride", "dilate"))
        return stride, dilate, window.per_axis(self, "pad", 0, n)

    @property
    def spans(self) -> window.Sizes:
        """What a window covers along each axis."""
        return window.reach(self.kernel, self.windows[1])

    def counts(self, space: window.Sizes) -> list[int]:
        """How many windows there are along each axis."""
        stride, _, pad = self.windows
        rows = zip(space, self.spans, stride, pad, strict=True)
        return [window.places(*row) for row in rows]

    def count(self, s: Shapes, space: window.Sizes) -> list[int]:
        """As `counts`; ShapeError where no window fits."""
        found = self.counts(space)
        if any(n < 1 and d != UNKNOWN for n, d in zip(found, space, strict=True)):
            raise s.refuse("data", f"sizes of at least the window's, {self.spans}", tuple(space))
        return found


@op("im2col")
class ImageToColumns(Patches):
    """The windows of images (N, C, space...) as columns (N, C * kernel, windows)."""

    def shapes(self, s: Shapes) -> None:
        reason = f" for kernel={self.kernel}"
        n, c, *space = s.rank("data", len(self.kernel) + 2, reason=reason)
        counts = self.count(s, tuple(space))
        s["output"] = (n, c * times(self.kernel), times(counts))

    def forward(self, data: Expr) -> Expr:
        (n, c, *space), rank = data.shape, len(self.kernel)
        counts = self.counts(tuple(space))
        columns = ext.unpack_patch2col(data, self.kernel, *self.windows)
        apart = ext.reshape(columns, (c, *self.kernel, n, *counts))
        order = (rank + 1, *range(rank + 1), *range(rank + 2, 2 * rank + 2))
        return ext.reshape(ext.transpose(apart, order), (n, c * times(self.kernel), times(counts)))


@op("col2im")
class ColumnsToImage(Patches):
    """Images with such columns (N, C * kernel, windows) added up."""

    leading = ("output_size",)
    output_size: Dims = param(low=1, doc="Spatial sizes of the images.")

    def check(self) -> None:
        if len(self.output_size) != len(self.kernel):
            raise self.wrong("output_size", f"{len(self.kernel)} numbers, as kernel has")

    def shapes(self, s: Shapes) -> None:
        counts = times(self.count(s, self.output_size))
        n, rows, _ = s.rank("data", 3)
        size = times(self.kernel)
        if rows != UNKNOWN and rows % size:
            raise s.refuse("data", f"rows in windows of {size}", f"shape {s['data']}")
        s["data"] = (n, rows, counts)
        s["output"] = (n, rows // size, *self.output_size)

    def forward(self, data: Expr) -> Expr:
        (n, rows, places), rank = data.shape, len(self.kernel)
        c, counts = rows // times(self.kernel), self.counts(self.output_size)
        apart = ext.reshape(data, (n, c, *self.kernel, *counts))
        order = (*range(1, rank + 2), 0, *range(rank + 2, 2 * rank + 2))
        columns = ext.reshape(ext.transpose(apart, order), (rows, n * places))
        shape = (n, c, *self.output_size)
        return ext.pack_col2patch(columns, shape, self.kernel, *self.windows)
