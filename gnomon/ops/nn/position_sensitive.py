"""Pooling of regions whose parts have channels of their own, and of rotated regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gnomon.ground.record import record
from gnomon.ops.case import case
from gnomon.ops.host import Array
from gnomon.ops.infer import UNKNOWN, Shapes
from gnomon.ops.nn.taps import Crossed, Regions, Spans, covered, mixed, seen
from gnomon.ops.op import op
from gnomon.ops.param import MOST, Dims, param

CASE = [[0, 0.6, 0.2, 7.3, 8.1], [1, 2.1, 1, 3, 3.2], [-1, 0, 0, 5, 5], [1, -5, -6, 20, 30]]
TURNED = [[0, 3, 4, 5, 3, 30], [1, 1, 1, 0.5, 9, -100], [-1, 1, 1, 1, 1, 0]]


def rounded(x: Array) -> Array:
    """The nearest whole number, away from 0 where two are."""
    return np.asarray(np.trunc(x + np.copysign(x.dtype.type(0.5), x)))


class Sensitive(Regions):
    """What both poolings share: groups of channels, and the corners of whole pixels."""

    spatial_scale: float = param(doc="Size of `data` as a share of what `rois` speak of.")
    output_dim: int = param(low=1, doc="Channels of the result.")
    pooled_size: int = param(low=1, doc="Rows, and columns, of parts.")
    group_size: int = param(0, low=0, doc="Rows, and columns, of groups; of parts where 0.")

    @property
    def across(self) -> int:
        """Groups along a side."""
        return self.group_size or self.pooled_size

    @property
    def groups(self) -> int:
        """Groups of channels."""
        return self.across**2

    def parts(self) -> Array:
        side = np.arange(self.pooled_size) * self.across // self.pooled_size
        return side[:, None] * self.across + side

    def shapes(self, s: Shapes) -> None:
        s["rois"] = (-1, 5)
        _, channels, *_ = s.rank("data", 4)
        if channels not in (UNKNOWN, self.output_dim * self.groups):
            expected = f"{self.output_dim} channels for each of {self.groups} groups"
            raise s.refuse("data", expected, channels)
        side = self.pooled_size
        s["output"] = (s.need("rois")[0], self.output_dim, side, side)

    def corners(self, rois: Array, shift: float = 0.0) -> tuple[Array, Array]:
        """Where regions begin (y, x), and their sizes, (regions, 2) each."""
        scale = rois.dtype.type(self.spatial_scale)
        first = rounded(rois[:, [2, 1]]) * scale - rois.dtype.type(shift)
        last = (rounded(rois[:, [4, 3]]) + 1) * scale - rois.dtype.type(shift)
        return first, np.maximum(last - first, rois.dtype.type(0.1))


@op("_contrib_PSROIPooling", inputs=("data", "rois"))
class PSROIPooling(Crossed, Sensitive):
    """The mean of each of `pooled_size` x `pooled_size` parts of regions, of channels of its own.

    `data` is (N, output_dim groups, h, w), a row of `rois` (n, x0, y0, x1, y1), times
    `spatial_scale`. There is no gradient of `rois`. (Dai et al., R-FCN, 2016.)
    """

    cases = (
        case((2, 8, 5, 6), CASE, spatial_scale=0.5, output_dim=2, pooled_size=2,
             differentiable=(0,)),
        case((2, 4, 5, 6), CASE, spatial_scale=1, output_dim=1, pooled_size=3, group_size=2,
             differentiable=(0,)),
        case((2, 4, 3, 3), (0, 5), spatial_scale=1, output_dim=1, pooled_size=2,
             differentiable=(0,)),
    )  # fmt: skip

    def most(self, shape: Sequence[int]) -> int:
        return math.prod(size + 3 * self.pooled_size for size in shape[2:])

    def weighted(self, shape: Sequence[int], *more: Array) -> tuple[Spans, Spans]:
        first, size = self.corners(more[0])
        spans = []
        for axis in (0, 1):
            step = size[:, axis, None] / size.dtype.type(self.pooled_size)
            border = np.arange(self.pooled_size + 1, dtype=size.dtype) * step
            border = np.nan_to_num(border + first[:, axis, None])
            border = np.where(np.isfinite(step), border, 0)  # nothing of a region without an end
            start, stop = np.floor(border[:, :-1]), np.ceil(border[:, 1:])
            spans.append(covered(start, stop, shape[2 + axis]))
        return spans[0], spans[1]

    def reference(self, data: Array, rois: Array) -> Array:
        side = self.pooled_size
        found = np.zeros((len(rois), self.output_dim, side, side))
        first, size = self.corners(rois)
        for r, c, i, j in np.ndindex(*found.shape):
            if rois[r, 0] < 0:
                continue
            at = []
            for k, axis, most in ((i, 0, data.shape[2]), (j, 1, data.shape[3])):
                step = size[r, axis] / side
                low = math.floor(k * step + first[r, axis])
                high = math.ceil((k + 1) * step + first[r, axis])
                at.append(slice(max(low, 0), min(max(high, 0), most)))
            channel = c * self.groups + self.parts()[i, j]
            region = data[int(rois[r, 0]), channel, at[0], at[1]]
            found[r, c, i, j] = region.mean() if region.size else 0
        return found


@record(slots=False)
class Samples:
    """Places (..., k) in images of `h` x `w` pixels, and what each counts."""

    y: Array
    x: Array
    weight: Array
    h: int
    w: int

    def sides(self, place: Array, size: int) -> tuple[Array, Array, Array]:
        """The pixels before and behind a place, and how far it is from the first."""
        low = np.clip(np.nan_to_num(np.floor(place)), 0, max(size - 1, 0)).astype(np.int64)
        high = np.clip(np.nan_to_num(np.ceil(place)), 0, max(size - 1, 0)).astype(np.int64)
        return low, high, place - low

    def shared(self, slope: str = "") -> tuple[Array, Array]:
        """Pixels and weights, (..., 4 k); of the slope along `x` or `y` where that is asked for."""
        top, bottom, down = self.sides(self.y, self.h)
        left, right, over = self.sides(self.x, self.w)
        ones = np.ones_like(down)
        shares = (-ones, ones) if slope == "y" else (1 - down, down)
        rows = list(zip((top, bottom), shares, strict=True))
        shares = (-ones, ones) if slope == "x" else (1 - over, over)
        columns = list(zip((left, right), shares, strict=True))
        pairs = [(y * self.w + x, a * b * self.weight) for y, a in rows for x, b in columns]
        pixels, weight = zip(*pairs, strict=True)
        return np.concatenate(pixels, -1), np.concatenate(weight, -1)


@op("_contrib_DeformablePSROIPooling", inputs=("data", "rois", "trans"))
class DeformablePSROIPooling(Sensitive):
    """Means of samples of parts of regions, of channels of its own, each part moved by `trans`.

    `trans` (regions, 2 classes, part_size, part_size) are moves (x, y) as shares of the region,
    times `trans_std`; channels of the result are shared by the classes. There is no gradient of
    `rois`. (Dai et al., Deformable Convolutional Networks, 2017.)
    """

    group_size: int = param(low=1, doc="Rows, and columns, of groups.")
    part_size: int = param(0, low=0, doc="Rows, and columns, of `trans`; `pooled_size` where 0.")
    sample_per_part: int = param(1, low=1, doc="Samples along a side of a part.")
    trans_std: float = param(0.0, doc="What `trans` is multiplied by.")
    no_trans: bool = param(False, doc="There is no `trans`.")
    leading = ("spatial_scale", "output_dim", "group_size")
    cases = (
        case((2, 8, 5, 6), CASE, (4, 4, 2, 2), spatial_scale=0.5, output_dim=2, pooled_size=3,
             group_size=2, part_size=2, sample_per_part=2, trans_std=0.05, differentiable=(0, 2)),
        case((2, 2, 5, 6), CASE, spatial_scale=0.4, output_dim=2, pooled_size=2, group_size=1,
             sample_per_part=3, no_trans=True, differentiable=(0,)),
    )  # fmt: skip

    def arguments(self) -> tuple[str, ...]:
        return ("data", "rois") if self.no_trans else ("data", "rois", "trans")

    @property
    def along(self) -> int:
        """Parts along a side of `trans`."""
        return self.part_size or self.pooled_size

    def shapes(self, s: Shapes) -> None:
        super().shapes(s)
        if not self.no_trans:
            s["trans"] = (s.need("rois")[0], -1, self.along, self.along)
            moves = s.need("trans")[1]
            if moves != UNKNOWN and (moves < 2 or moves % 2 or self.output_dim % (moves // 2)):
                expected = f"2 moves a class, among which {self.output_dim} channels are shared"
                raise s.refuse("trans", expected, moves)

    def classes(self, *more: Array) -> int:
        return 1 if self.no_trans else int(more[1].shape[1]) // 2

    def most(self, shape: Sequence[int]) -> int:
        return 4 * self.output_dim * (self.pooled_size * self.sample_per_part) ** 2

    def moves(self, trans: Array) -> Array:
        """`trans` of each part, (regions, classes, 2, rows, columns)."""
        side = np.arange(self.pooled_size) * self.along // self.pooled_size
        each = trans.reshape(len(trans), trans.shape[1] // 2, 2, self.along, self.along)
        found = each[:, :, :, side[:, None], side] * trans.dtype.type(self.trans_std)
        return np.asarray(found)

    def samples(self, shape: Sequence[int], *more: Array) -> Samples:
        """Where samples lie, (regions, classes, rows, columns, samples)."""
        first, size = self.corners(more[0], 0.5)
        count, bins = self.sample_per_part, np.arange(self.pooled_size, dtype=first.dtype)
        step = size / first.dtype.type(self.pooled_size)
        grid = np.indices((count, count), first.dtype).reshape(2, -1) / first.dtype.type(count)
        places = []
        for axis in (0, 1):
            own, start, length = (e[:, axis, None, None, None, None] for e in (step, first, size))
            part = bins[:, None, None] if axis == 0 else bins[:, None]
            place = start + (part + grid[axis]) * own
            if not self.no_trans:
                place = place + self.moves(more[1])[:, :, 1 - axis, :, :, None] * length
            places.append(place)
        y, x = np.broadcast_arrays(*places)
        h, w = shape[2:]
        used = (y >= -0.5) & (y <= h - 0.5) & (x >= -0.5) & (x <= w - 0.5)
        weight = used / np.maximum(used.sum(-1, keepdims=True), 1)
        return Samples(np.clip(y, 0, h - 1), np.clip(x, 0, w - 1), weight, h, w)

    def weighted(self, shape: Sequence[int], *more: Array) -> tuple[Array, Array]:
        return self.samples(shape, *more).shared()

    def gradient(self, grad: Array, inputs: tuple[Array, ...]) -> dict[str, Array]:
        found = super().gradient(grad, inputs)
        if self.no_trans or not grad.size:
            return found
        data, rois, trans = inputs
        parts = np.zeros((*trans.shape[:2], *self.parts().shape))
        sizes = self.corners(rois, 0.5)[1][:, :, None, None, None]
        for axis, name in ((0, "x"), (1, "y")):
            slopes = self.slopes(name, grad, data, rois, trans)
            parts[:, axis::2] = slopes * sizes[:, 1 - axis] * self.trans_std
        side = np.arange(self.pooled_size) * self.along // self.pooled_size
        moved = np.zeros_like(trans)
        for i, j in np.ndindex(*self.parts().shape):
            moved[:, :, side[i], side[j]] += parts[:, :, i, j]
        return {**found, "trans": moved}

    def sloping(self, name: str, shape: Sequence[int], *more: Array) -> tuple[Array, Array]:
        """As `weighted`, for the slope along an axis."""
        return self.samples(shape, *more).shared(name)

    def slopes(self, name: str, grad: Array, *inputs: Array) -> Array:
        """The gradient of where parts lie along an axis, (regions, classes, rows, columns)."""
        data, *more = inputs
        classes = self.classes(*more)
        heads, rows = self.heads(grad, classes), self.rows(data, classes)
        found = np.zeros_like(heads)
        for taps in self.taps(data.shape, partial(self.sloping, name), *more):
            mixed(found, taps, rows)
        total = (found * heads).sum(1)
        return np.asarray(total.reshape(len(grad), classes, *self.parts().shape))

    def reference(self, data: Array, rois: Array, trans: Array | None = None) -> Array:
        side, count = self.pooled_size, self.sample_per_part
        h, w = data.shape[2:]
        found = np.zeros((len(rois), self.output_dim, side, side))
        first, size = self.corners(rois, 0.5)
        each = self.output_dim if trans is None else self.output_dim // (trans.shape[1] // 2)
        for r, c, i, j in np.ndindex(*found.shape):
            move, values = np.zeros(2), []
            if trans is not None:
                at = (i * self.along // side, j * self.along // side)
                k = 2 * (c // each)
                move = trans[r, [k + 1, k], at[0], at[1]] * self.trans_std * size[r]
            image = data[int(rois[r, 0]), c * self.groups + self.parts()[i, j]]
            for place in np.ndindex(count, count):
                inner = (np.array([i, j]) + np.array(place) / count) * size[r] / side
                y, x = first[r] + inner + move
                if -0.5 <= y <= h - 0.5 and -0.5 <= x <= w - 0.5:
                    values.append(_between(image, min(max(y, 0), h - 1), min(max(x, 0), w - 1)))
            found[r, c, i, j] = np.mean(values) if values and rois[r, 0] >= 0 else 0
        return found


def _between(image: Array, y: float, x: float) -> float:
    """An image at a place between four pixels."""
    rows = {math.floor(y): 1 - y % 1, math.ceil(y): y % 1 or 1}
    columns = {math.floor(x): 1 - x % 1, math.ceil(x): x % 1 or 1}
    return float(sum(image[i, j] * a * b for i, a in rows.items() for j, b in columns.items()))


@op("_contrib_RROIAlign", inputs=("data", "rois"))
class RROIAlign(Regions):
    """Means of samples of each of `pooled_size` parts of rotated regions of `data` (N, C, h, w).

    A row of `rois` is (n, x, y, width, height, angle), of the center, times `spatial_scale`; the
    angle is in degrees, anticlockwise as seen. There is no gradient of `rois`. (Ma et al.,
    Arbitrary-Oriented Scene Text Detection via Rotation Proposals, 2018.)
    """

    pooled_size: Dims = param(low=1, lengths=(2,), doc="Rows and columns of parts.")
    spatial_scale: float = param(doc="Size of `data` as a share of what `rois` speak of.")
    sampling_ratio: int = param(
        -1, high=MOST, doc="Samples along a side of a part; a pixel each if not > 0."
    )
    cases = (
        case((2, 2, 6, 7), TURNED, pooled_size=(2, 3), spatial_scale=0.9, differentiable=(0,)),
        case((2, 2, 6, 7), TURNED, pooled_size=(1, 2), spatial_scale=1, sampling_ratio=3,
             differentiable=(0,)),
    )  # fmt: skip

    def parts(self) -> Array:
        return np.zeros(self.pooled_size, np.int64)

    def shapes(self, s: Shapes) -> None:
        s["rois"] = (-1, 6)
        s["output"] = (s.need("rois")[0], s.rank("data", 4)[1], *self.pooled_size)

    def most(self, shape: Sequence[int]) -> int:
        own = self.sampling_ratio
        sides = zip(self.pooled_size, shape[2:], strict=True)
        return math.prod(2 * n * own if own > 0 else 2 * (size + 3 * n) for n, size in sides)

    def offsets(self, length: Array, bins: int, at: Array, far: float) -> tuple[Array, Array]:
        """Samples of parts of a side from its middle, (regions, bins, k), and what each counts.

        All are there that lie not more than `far` from `at`.
        """
        length, at = length[:, None, None], at[:, None, None]
        step = length / length.dtype.type(bins)
        own = np.ceil(step) if self.sampling_ratio <= 0 else np.full_like(step, self.sampling_ratio)
        own = np.where(np.isfinite(step), own, 0)
        start = np.arange(bins, dtype=length.dtype)[:, None] * step - length / 2
        k = seen(start, step / np.maximum(own, 1), own, at - far, at + far)
        place = start + (k + length.dtype.type(0.5)) / np.maximum(own, 1) * step
        return place, np.broadcast_to((k < own) / np.maximum(own, 1), place.shape)

    def weighted(self, shape: Sequence[int], *more: Array) -> tuple[Array, Array]:
        h, w = shape[2:]
        center = more[0][:, 1:3] * more[0].dtype.type(self.spatial_scale)
        length = np.maximum(more[0][:, 3:5] * more[0].dtype.type(self.spatial_scale), 1)
        turn = np.deg2rad(more[0][:, 5])
        x, y = (w - 1) / 2 - center[:, 0], (h - 1) / 2 - center[:, 1]  # of the image's middle
        over, under = x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)
        far = math.hypot(h + 1, w + 1) / 2
        down, each_down = self.offsets(length[:, 1], self.pooled_size[0], under, far)
        right, each_right = self.offsets(length[:, 0], self.pooled_size[1], over, far)
        y, x = down[:, :, None, :, None], right[:, None, :, None, :]
        angle = turn[:, None, None, None, None]
        cos, sin = np.cos(angle), np.sin(angle)
        middle = center[:, :, None, None, None, None]
        x, y = x * cos + y * sin + middle[:, 0], y * cos - x * sin + middle[:, 1]
        weight = each_down[:, :, None, :, None] * each_right[:, None, :, None, :]
        used = (y >= -1) & (y <= h) & (x >= -1) & (x <= w)
        shape = (len(x), 1, *self.pooled_size, math.prod(x.shape[3:]))
        y, x = np.clip(y, 0, h - 1).reshape(shape), np.clip(x, 0, w - 1).reshape(shape)
        return Samples(y, x, np.where(used, weight, 0).reshape(shape), h, w).shared()

    def reference(self, data: Array, rois: Array) -> Array:
        h, w = data.shape[2:]
        rows, columns = self.pooled_size
        found = np.zeros((len(rois), data.shape[1], rows, columns))
        for r, c, i, j in np.ndindex(*found.shape):
            if rois[r, 0] < 0:
                continue
            center, size = rois[r, 1:3] * self.spatial_scale, rois[r, 3:5] * self.spatial_scale
            wide, high = np.maximum(size, 1) / np.array([columns, rows])
            own = [self.sampling_ratio if self.sampling_ratio > 0 else int(np.ceil(z))
                   for z in (high, wide)]  # fmt: skip
            spin = np.exp(-1j * np.deg2rad(rois[r, 5]))
            values = []
            for a, b in np.ndindex(*own):
                y, x = (i + (a + 0.5) / own[0] - rows / 2), (j + (b + 0.5) / own[1] - columns / 2)
                turned = (x * wide + 1j * y * high) * spin + complex(*center)
                x, y = turned.real, turned.imag
                seen = -1 <= y <= h and -1 <= x <= w
                inside = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
                values.append(_between(data[int(rois[r, 0]), c], *inside) if seen else 0)
            found[r, c, i, j] = np.mean(values)
        return found
