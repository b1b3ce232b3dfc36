"""Convolutions whose windows are deformed: each element of a window is taken where offsets say."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gnomon.dtype import int64
from gnomon.expr import call, ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.infer import Shapes
from gnomon.ops.nn.convolution import Convolution
from gnomon.ops.nn.spatial import inside, within
from gnomon.ops.op import op
from gnomon.ops.param import Dims, param


class Deformable(Convolution):
    """What both share: columns of pixels at deformed places, and their product with `weight`."""

    kernel: Dims = param(low=1, lengths=(2,), doc="Size of the window: (h, w).")
    layout: str | None = param(
        None, choices=("NCDHW", "NCHW", "NCW"), doc="Order of the axes; channels come first."
    )
    num_deformable_group: int = param(1, low=1, doc="Groups of channels with offsets of their own.")
    cudnn_tune = None
    cudnn_off = False
    leading: ClassVar[tuple[str, ...]] = (
        "kernel", "stride", "dilate", "pad", "num_filter", "num_group", "num_deformable_group",
        "workspace", "no_bias", "im2col_step",
    )  # fmt: skip
    further: tuple[str, ...] = ("offset",)

    def arguments(self) -> tuple[str, ...]:
        names = ("data", *self.further, "weight", "bias")
        return names[:-1] if self.no_bias else names

    def shapes(self, s: Shapes) -> None:
        groups = self.num_deformable_group
        channels = s.rank("data", 4)[1]
        if channels != -1 and channels % groups:
            raise s.refuse("data", f"channels in {groups} deformable groups", channels)
        super().shapes(s)
        n, _, h, w = s.need("output")
        taps = groups * self.kernel[0] * self.kernel[1]
        for name, each in zip(self.further, (2, 1), strict=False):
            s[name] = (n, each * taps, h, w)

    @property
    def sets(self) -> int:
        """Sets of channels that share both their offsets and their filters."""
        return math.lcm(self.num_deformable_group, self.num_group)

    def each_set(self, values: Expr, parts: int) -> list[Expr]:
        """What (N, groups taps parts, h, w) says of taps, in parts (N, h, w, sets, taps)."""
        n, _, h, w = values.shape
        taps, groups = self.kernel[0] * self.kernel[1], self.num_deformable_group
        apart = ext.transpose(
            ext.reshape(values, (n, groups, taps, parts, h, w)), (0, 4, 5, 1, 2, 3)
        )
        found = []
        for k in range(parts):
            one = ext.slice_(apart, (0, 0, 0, 0, 0, k), (n, h, w, groups, taps, k + 1))
            one = ext.reshape(one, (n, h, w, groups, 1, taps))
            wide = ext.broadcast_to(one, (n, h, w, groups, self.sets // groups, taps))
            found.append(ext.reshape(wide, (n, h, w, self.sets, taps)))
        return found

    def places_of(self, offset: Expr) -> list[Expr]:
        """Rows and columns of the elements of windows, (N, h, w, sets, taps) each."""
        found = []
        for k, move in enumerate(self.each_set(offset, 2)):
            stride, pad, dilate = (part[k] for part in self.places)
            tap = ext.iota(move.shape, 4, int64)
            row = tap / self.kernel[1]
            inner = tap - row * self.kernel[1] if k else row
            window = ext.iota(move.shape, 1 + k, int64) * stride - pad + inner * dilate
            found.append(move + cast(window, offset.dtype))
        return found

    def pixels(self, data: Expr, y: Expr, x: Expr) -> Expr:
        """Channels at these places, (N, h, w, sets, taps, channels of a set)."""
        n, c, h, w = data.shape
        sets = ext.reshape(data, (n, self.sets, c // self.sets, h, w))
        rows = ext.transpose(sets, (0, 1, 3, 4, 2))
        rows = ext.reshape(rows, (n * self.sets * h * w, c // self.sets))
        which = ext.iota(y.shape, 0, int64) * self.sets + ext.iota(y.shape, 3, int64)
        total: Expr | None = None
        for row, down in self.sides(y, h):
            for column, right in self.sides(x, w):
                at = (which * h + within(row, h)) * w + within(column, w)
                pixel = ext.take(rows, at)
                share = ext.reshape(down * right, (*y.shape, 1))
                part = pixel * ext.broadcast_to(share, pixel.shape)
                total = part if total is None else total + part
        assert total is not None
        return total

    def sides(self, place: Expr, size: int) -> list[tuple[Expr, Expr]]:
        """The pixels before and behind a place along an axis, and the share of each."""
        place = fn.clip(place, -1.0, float(size))  # infinite ones, too, have a share of 0
        low = fn.floor(place)
        return [(low, (1.0 - (place - low)) * inside(low, size)),
                (low + 1.0, (place - low) * inside(low + 1.0, size))]  # fmt: skip

    def product(self, columns: Expr, weight: Expr) -> Expr:
        """Columns (N, h, w, sets, taps, channels of a set) times the filters."""
        n, h, w, sets, taps, each = columns.shape
        groups, filters = self.num_group, self.num_filter // self.num_group
        span = sets // groups * taps * each
        flat = ext.reshape(columns, (n * h * w, groups * span))
        apart = ext.reshape(weight, (self.num_filter, sets // groups, each, taps))
        rows = ext.reshape(ext.transpose(apart, (0, 1, 3, 2)), (self.num_filter, span))
        made = []
        for k in range(groups):
            part = ext.slice_(flat, (0, k * span), (n * h * w, (k + 1) * span))
            own = ext.slice_(rows, (k * filters, 0), ((k + 1) * filters, span))
            made.append(call.dot(part, own, transpose_b=True))
        found = made[0] if groups == 1 else ext.concat(made, 1)
        return ext.transpose(ext.reshape(found, (n, h, w, self.num_filter)), (0, 3, 1, 2))

    def forward(self, *inputs: Any) -> Expr:
        by = dict(zip(self.arguments(), inputs, strict=True))
        columns = self.pixels(by["data"], *self.places_of(by["offset"]))
        if "mask" in by:
            (scale,) = self.each_set(by["mask"], 1)
            scale = ext.reshape(scale, (*scale.shape, 1))
            columns = columns * ext.broadcast_to(scale, columns.shape)
        y = self.product(columns, by["weight"])
        return y if self.no_bias else y + ext.broadcast_axis(by["bias"], y.shape, 1)

    def reference(self, *inputs: Any) -> Any:
        by = dict(zip(self.arguments(), inputs, strict=True))
        data, weight = by["data"], by["weight"]
        n, _, h, w = self.infer_shape([x.shape for x in inputs])[1][0]  # type: ignore[misc]
        found = np.zeros((n, self.num_filter, h, w))
        taps, each = self.kernel[0] * self.kernel[1], data.shape[1] // self.num_deformable_group
        for b, f, i, j, c, k in np.ndindex(n, self.num_filter, h, w, weight.shape[1], taps):
            channel = f // (self.num_filter // self.num_group) * weight.shape[1] + c
            tap = channel // each * taps + k
            move = by["offset"][b, 2 * tap : 2 * tap + 2, i, j]
            rows = zip((i, j), *self.places, divmod(k, self.kernel[1]), strict=True)
            place = [p * s - pad + d * t for p, s, pad, d, t in rows] + move
            value = self.at(data[b, channel], *place)
            value *= by["mask"][b, tap, i, j] if "mask" in by else 1
            found[b, f, i, j] += value * weight[f, c].ravel()[k]
        return found if self.no_bias else found + by["bias"][:, None, None]

    def at(self, image: Any, y: float, x: float) -> float:
        """An image at a place between four pixels; 0 outside."""
        padded = np.pad(image, 1)
        top, left = int(np.floor(y)), int(np.floor(x))
        h, w = image.shape
        if not (-1 <= top < h and -1 <= left < w):
            return 0.0
        four = padded[top + 1 : top + 3, left + 1 : left + 3]
        down, right = y - top, x - left
        return float(np.array([1 - down, down]) @ four @ np.array([1 - right, right]))


@op("_contrib_DeformableConvolution", inputs=("data", "offset", "weight", "bias"))
class DeformableConvolution(Deformable):
    """A convolution whose windows are deformed by `offset` (N, 2 groups taps, h, w), rows first.

    Places between pixels are interpolated, up to the last pixel; outside of it they are 0. (Dai et
    al., Deformable Convolutional Networks, 2017.)
    """

    cases = (
        case((1, 2, 2, 2), (1, 4, 2, 1), (2, 1, 2, 1), kernel=(2, 1), num_filter=2, num_group=2,
             pad=(1, 0), stride=(1, 2), dilate=(2, 1), no_bias=True),
    )  # fmt: skip

    def sides(self, place: Expr, size: int) -> list[tuple[Expr, Expr]]:
        seen = fn.logical_and(fn.ge(place, 0), fn.lt(place, size))
        kept = fn.clip(place, 0.0, max(size - 1.0, 0.0))
        low = fn.floor(kept)
        return [(low, (1.0 - (kept - low)) * seen), (low + 1.0, (kept - low) * seen)]

    def at(self, image: Any, y: float, x: float) -> float:
        h, w = image.shape
        if not (0 <= y < h and 0 <= x < w):
            return 0.0
        return super().at(image, min(y, h - 1), min(x, w - 1))


@op(
    "_contrib_ModulatedDeformableConvolution",
    inputs=("data", "offset", "mask", "weight", "bias"),
)
class ModulatedDeformableConvolution(Deformable):
    """A convolution whose windows are deformed by `offset`, and their elements scaled by `mask`.

    `offset` is (N, 2 groups taps, h, w), rows first, `mask` (N, groups taps, h, w). Places between
    pixels are interpolated; those outside are 0. (Zhu et al., Deformable ConvNets v2, 2018.)
    """

    im2col_step: int = param(64, low=0, doc="No meaning here.")
    further = ("offset", "mask")
    cases = (
        case((1, 2, 2, 2), (1, 8, 2, 1), (1, 4, 2, 1), (2, 1, 2, 1), (2,), kernel=(2, 1),
             num_filter=2, num_group=2, num_deformable_group=2, pad=(1, 0), stride=(1, 2),
             dilate=(2, 1)),
    )  # fmt: skip
