"""ROIAlign: means of samples between the pixels of parts of regions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gnomon.ops.case import case
from gnomon.ops.host import Array
from gnomon.ops.infer import UNKNOWN, Shapes
from gnomon.ops.nn.taps import Crossed, Spans, averaged
from gnomon.ops.op import op
from gnomon.ops.param import MOST, Dims, param

CASE = [[0, 0.1, 0.2, 7.3, 8.1], [1, 1.1, 1, 3, 3.2], [-1, 0, 0, 5, 5], [1, -5, -6, 20, 30]]


@op("_contrib_ROIAlign", inputs=("data", "rois"))
class ROIAlign(Crossed):
    """Means of samples of each of `pooled_size` parts of regions of `data` (N, C, h, w).

    A row of `rois` is a number of an image (below 0 of none: the result is 0), and the corners of
    the region: (n, x0, y0, x1, y1), times `spatial_scale`. Samples are interpolated between
    pixels. There is no gradient of `rois`. (He et al., Mask R-CNN, 2017.)
    """

    pooled_size: Dims = param(low=1, lengths=(2,), doc="Rows and columns of parts.")
    spatial_scale: float = param(doc="Size of `data` as a share of what `rois` speak of.")
    sample_ratio: int = param(
        -1, high=MOST, doc="Samples along a side of a part; a pixel each if not > 0."
    )
    position_sensitive: bool = param(False, doc="Each part has channels of its own.")
    aligned: bool = param(False, doc="Pixels are points in the middle of squares.")
    cases = (
        case((2, 2, 5, 6), CASE, pooled_size=(2, 3), spatial_scale=0.5, differentiable=(0,)),
        case((2, 8, 5, 6), CASE, pooled_size=(2, 2), spatial_scale=0.5, sample_ratio=2,
             position_sensitive=True, aligned=True, differentiable=(0,)),
        case((2, 3, 4, 4), (0, 5), pooled_size=(2, 2), spatial_scale=1, differentiable=(0,)),
        case((2, 0, 4, 4), CASE, pooled_size=(2, 2), spatial_scale=1, differentiable=()),
    )  # fmt: skip

    @property
    def groups(self) -> int:
        """How many parts have channels of their own."""
        return self.pooled_size[0] * self.pooled_size[1] if self.position_sensitive else 1

    def parts(self) -> Array:
        count = self.pooled_size[0] * self.pooled_size[1]
        return np.arange(count).reshape(self.pooled_size) % self.groups

    def shapes(self, s: Shapes) -> None:
        s["rois"] = (-1, 5)
        channels = s.rank("data", 4)[1]
        if channels % self.groups and channels != UNKNOWN:
            raise s.refuse("data", f"channels that {self.groups} parts share", channels)
        s["output"] = (s.need("rois")[0], channels // self.groups, *self.pooled_size)

    def most(self, shape: Sequence[int]) -> int:
        sides = zip(self.pooled_size, shape[2:], strict=True)
        own = self.sample_ratio
        return math.prod(2 * n * own if own > 0 else size + 3 * n for n, size in sides)

    def weighted(self, shape: Sequence[int], *more: Array) -> tuple[Spans, Spans]:
        rois = more[0]
        scale = rois.dtype.type(self.spatial_scale)
        shift = rois.dtype.type(0.5 if self.aligned else 0)
        corners = rois[:, 1:] * scale - shift
        found = []
        for axis in (1, 0):  # y, then x
            bins, first = self.pooled_size[1 - axis], corners[:, axis]
            length = corners[:, axis + 2] - first
            length = np.maximum(length, 0 if self.aligned else 1)
            step = length / rois.dtype.type(bins)
            own = np.ceil(step) if self.sample_ratio <= 0 else np.full_like(step, self.sample_ratio)
            found.append(averaged(first, step, own, bins, shape[3 - axis]))
        return found[0], found[1]

    def reference(self, data: Array, rois: Array) -> Array:
        rows, columns = self.pooled_size
        found = np.zeros((len(rois), data.shape[1] // self.groups, rows, columns))
        shift = 0.5 if self.aligned else 0.0
        for at in np.ndindex(*found.shape):
            r, c, i, j = at
            if rois[r, 0] < 0:
                continue
            channel = (c * rows + i) * columns + j if self.position_sensitive else c
            x0, y0, x1, y1 = rois[r, 1:] * self.spatial_scale - shift
            least = 0 if self.aligned else 1
            high, wide = max(y1 - y0, least) / rows, max(x1 - x0, least) / columns
            m, n = (self.sample_ratio if self.sample_ratio > 0 else int(np.ceil(z))
                    for z in (high, wide))  # fmt: skip
            ys = [y0 + high * (i + (k + 0.5) / m) for k in range(m)]
            xs = [x0 + wide * (j + (k + 0.5) / n) for k in range(n)]
            image = data[int(rois[r, 0]), channel]
            found[at] = np.mean([_between(image, y, x) for y in ys for x in xs] or [0])
        return found


def _between(image: Array, y: float, x: float) -> float:
    """An image at a place between four pixels."""
    h, w = image.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = min(max(y, 0.0), h - 1.0), min(max(x, 0.0), w - 1.0)
    top, left = int(y), int(x)
    down, right = y - top, x - left
    rows = image[[top, min(top + 1, h - 1)]]
    upper, lower = (row[left] * (1 - right) + row[min(left + 1, w - 1)] * right for row in rows)
    return float(upper * (1 - down) + lower * down)
