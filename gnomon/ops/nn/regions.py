"""Operators on regions of images: the maximum of parts of each, and correlation of patches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gnomon.dtype import int64
from gnomon.native.serve import served
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp, pooled
from gnomon.ops.infer import Shapes, one_dtype
from gnomon.ops.nn.roi_maxima import maxima
from gnomon.ops.op import op
from gnomon.ops.param import Dims, param


@op(
    "ROIPooling",
    inputs=("data", "rois"),
    outputs=("output", "maxidx"),
    aliases=("_npx_roi_pooling",),
)
class ROIPooling(HostOp):
    """The maximum of each of `pooled_size` parts of regions of `data` (N, C, h, w).

    A row of `rois` is a number of an image, and the first and last column and row: (n, x0, y0, x1,
    y1), times `spatial_scale`. A part that lies outside of the image gives 0, as all parts of a
    region of no image; one of NaN and minus infinity alone gives the lowest float32.
    """

    pooled_size: Dims = param(low=1, lengths=(2,), doc="Rows and columns of parts.")
    spatial_scale: float = param(doc="Size of `data` as a share of what `rois` speak of.")
    num_visible_outputs = 1  # the other says where maxima lie
    types = one_dtype("data", "rois", "output", kinds="f", maxidx=int64)

    def shapes(self, s: Shapes) -> None:
        s["rois"] = (-1, 5)
        s["output"] = (s.need("rois")[0], s.rank("data", 4)[1], *self.pooled_size)
        s["maxidx"] = s.need("output")

    def parts(self, first: Array, last: Array, count: int, size: int) -> Array:
        """Where parts of regions begin and end along a side, (regions, 2, count)."""
        step = np.maximum(last - first + 1, 1).astype(np.float32) / np.float32(count)
        borders = np.arange(count + 1, dtype=np.float32) * step[:, None]
        ends = np.stack([np.floor(borders[:, :-1]), np.ceil(borders[:, 1:])], 1)
        return np.clip(ends.astype(np.int64) + first[:, None, None], 0, size)

    def compute(self, data: Array, rois: Array) -> tuple[Array, Array]:
        n, channels, h, w = data.shape
        images = np.trunc(rois[:, 0])
        inside = (images >= 0) & (images < n)
        images = np.where(inside, images, 0).astype(np.int64)
        scaled = rois[:, 1:].astype(np.float32) * np.float32(self.spatial_scale)
        x0, y0, x1, y1 = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64).T
        rows = self.parts(y0, y1, self.pooled_size[0], h)
        rows[~inside] = 0
        columns = self.parts(x0, x1, self.pooled_size[1], w)
        whole = pooled(data.shape, np.float64)
        np.copyto(whole, data)
        shape = (len(rois), channels, *self.pooled_size)
        found, places = pooled(shape, np.float64), pooled(shape, np.int64)
        arrays = [a.ctypes.data for a in (whole, images, rows, columns, found, places)]
        served(maxima)[0](*arrays, len(rois), channels, h, w, *self.pooled_size)
        return found, places

    def gradient(self, grad: Array, data: Array, maxidx: Array) -> dict[str, Array]:
        sums = np.bincount(maxidx.ravel() + 1, grad.ravel(), data.size + 1)  # 0: of none
        return {"data": sums[1:].reshape(data.shape)}


@op("Correlation", inputs=("data1", "data2"))
class Correlation(HostOp):
    """Products of patches of `data1` with patches of `data2` around the same place.

    A channel of the result for each displacement, row by row; each a mean over patch and channels.
    """

    kernel_size: int = param(1, low=1, doc="Side of a patch; odd.")
    max_displacement: int = param(1, low=0, doc="How far a patch is displaced.")
    stride1: int = param(1, low=1, doc="Distance of neighbouring patches of `data1`.")
    stride2: int = param(1, low=1, doc="Distance of neighbouring displacements.")
    pad_size: int = param(0, low=0, doc="Zeros around either image.")
    is_multiply: bool = param(True, doc="Products; else absolute differences.")
    cases = (
        case((2, 3, 4, 5), (2, 3, 4, 5), pad_size=1),
        case((1, 2, 6, 7), (1, 2, 6, 7), kernel_size=3, max_displacement=2, stride2=2, pad_size=3),
        case((1, 1, 5, 5), (1, 1, 5, 5), stride1=2, pad_size=1, is_multiply=False),
    )
    types = one_dtype(kinds="f")

    def check(self) -> None:
        if self.kernel_size % 2 == 0:
            raise self.wrong("kernel_size", "an odd size")

    @property
    def steps(self) -> list[int]:
        """The displacements along an axis."""
        reach = self.max_displacement // self.stride2
        return [k * self.stride2 for k in range(-reach, reach + 1)]

    @property
    def border(self) -> int:
        """What the displacements and half a patch take of each side."""
        return self.max_displacement + self.kernel_size // 2

    def shapes(self, s: Shapes) -> None:
        s.same("data1", "data2")
        n, _, *space = s.rank("data1", 4)
        inner = [d + 2 * self.pad_size - 2 * self.border for d in space]
        sizes = [-(-d // self.stride1) for d in inner]
        if any(m < 1 and d != -1 for m, d in zip(sizes, space, strict=True)):
            raise s.refuse("data1", "room for a patch and its displacements", tuple(space))
        s["output"] = (n, len(self.steps) ** 2, *sizes)

    def padded(self, data: Array) -> Array:
        """`data` with zeros around it."""
        around = (self.pad_size, self.pad_size)
        return np.pad(data, ((0, 0), (0, 0), around, around))

    def windows(self, shape: tuple[int, ...]) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
        """Where each element of a patch lies, for all patches: and how far it is displaced."""
        space = [d - 2 * self.border for d in shape[2:]]
        half = self.kernel_size // 2
        for dy in range(-half, half + 1):
            for dx in range(-half, half + 1):
                places = (
                    slice(self.border + d, self.border + d + n, self.stride1)
                    for d, n in zip((dy, dx), space, strict=True)
                )
                yield dy, dx, (slice(None), slice(None), *places)

    @staticmethod
    def moved(place: tuple[slice, ...], by: tuple[int, int]) -> tuple[slice, ...]:
        """A place that far away."""
        far = (slice(p.start + d, p.stop + d, p.step) for p, d in zip(place[2:], by, strict=True))
        return (*place[:2], *far)

    def compute(self, data1: Array, data2: Array) -> Array:
        a, b = self.padded(data1), self.padded(data2)
        shifts = [(dy, dx) for dy in self.steps for dx in self.steps]
        channels = []
        for by in shifts:
            total: Array | float = 0.0
            for _, _, place in self.windows(a.shape):
                left, right = a[place], b[self.moved(place, by)]
                total = total + (left * right if self.is_multiply else np.abs(left - right)).sum(1)
            channels.append(total)
        return np.asarray(np.stack(channels, 1) / (self.kernel_size**2 * data1.shape[1]))

    reference = compute

    def gradient(self, grad: Array, data1: Array, data2: Array) -> tuple[Array, ...]:
        a, b = self.padded(data1), self.padded(data2)
        found = [np.zeros_like(a), np.zeros_like(b)]
        grad = grad / (self.kernel_size**2 * data1.shape[1])
        shifts = [(dy, dx) for dy in self.steps for dx in self.steps]
        for k, by in enumerate(shifts):
            g = grad[:, k, None]
            for _, _, place in self.windows(a.shape):
                away = self.moved(place, by)
                left, right = a[place], b[away]
                sign = np.sign(left - right)
                found[0][place] += g * (right if self.is_multiply else sign)
                found[1][away] += g * (left if self.is_multiply else -sign)
        inner = slice(self.pad_size, -self.pad_size or None)
        return tuple(e[:, :, inner, inner] for e in found)
