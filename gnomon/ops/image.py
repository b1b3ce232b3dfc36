"""Operators on images (height, width, channels): `nd.image`, for transforms of data.

Colours of integer images end at the ends of their dtype: 300 as uint8 is 255.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType, float32, float64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.infer import UNKNOWN, Shape, Shapes, Types, fixed_dtypes
from gnomon.ops.op import Op, op
from gnomon.ops.param import Floats, param

CHANNELS = (1, 3, UNKNOWN)
# the three directions in which the colours of natural images differ most, times how much
LIGHT = (
    (55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009),
    (55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140),
    (55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203),
)


class ImageOp(Op):
    """What operators on images share; those of `ranks` 4 take batches too."""

    ranks: ClassVar[tuple[int, ...]] = (3,)

    def image(self, s: Shapes) -> Shape:
        """The shape of the image or batch; ShapeError where it is none."""
        data = s.need("data")
        if len(data) not in self.ranks:
            batch = " or (batch, height, width, channels)" if 4 in self.ranks else ""
            raise s.refuse("data", f"(height, width, channels){batch}", f"shape {data}")
        return data


@op("_image_to_tensor")
class ToTensor(ImageOp):
    """Channels first, and numbers of 0 to 255 divided by 255, as float32."""

    ranks = (3, 4)
    types = fixed_dtypes(output=float32)

    def shapes(self, s: Shapes) -> None:
        *batch, h, w, c = self.image(s)
        s["output"] = (*batch, c, h, w)

    def forward(self, data: Expr) -> Expr:
        lead = range(data.ndim - 3)
        n = data.ndim
        order = (*lead, n - 1, n - 3, n - 2)
        return ext.transpose(cast(data, float32) / 255.0, order)


# what MXNet has where nothing is given, for any number of channels
FOR_ALL = {"mean": (0.0,) * 4, "std": (1.0,) * 4}


@op("_image_normalize")
class Normalize(ImageOp):
    """Each channel minus its mean, divided by its standard deviation; channels come first."""

    ranks = (3, 4)
    mean: Floats = param(FOR_ALL["mean"], doc="One for all channels, or one each.")
    std: Floats = param(FOR_ALL["std"], doc="One for all channels, or one each.")

    def check(self) -> None:
        if 0 in self.std:
            raise self.wrong("std", "numbers other than 0")

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        if len(data) not in self.ranks:
            expected = "(channels, height, width) or (batch, channels, height, width)"
            raise s.refuse("data", expected, f"shape {data}")
        channels = data[-3]
        for name in ("mean", "std"):
            given = getattr(self, name)
            if channels not in (UNKNOWN, len(given)) and len(given) != 1 and given != FOR_ALL[name]:
                expected = f"one number, or one for each of {channels} channels"
                raise ShapeError(complaint(self.name, name, expected, given))

    def types(self, t: Types) -> None:
        t.same("data", "output")
        _refuse_ints(t, "data")

    def forward(self, data: Expr) -> Expr:
        mean, std = (per_channel(values, data, -3) for values in (self.mean, self.std))
        whole: Expr = (data - mean) / std
        return whole


def _refuse_ints(t: Types, name: str) -> None:
    found = t[name]
    if found is not None and found.kind in "iub":
        raise t.refuse(name, "floating-point numbers (use to_tensor or cast)", found.name)


def per_channel(values: Any, like: Expr, axis: int) -> Any:
    """One of `values` for each channel of `like`; the number itself where all are one."""
    if len(set(values)) == 1:
        return values[0]
    place = ext.iota(like.shape, like.ndim + axis, like.dtype)
    found: Any = values[-1]
    for k in reversed(range(len(values) - 1)):
        found = fn.where(fn.eq(place, k), values[k], found)
    return found


@op("_image_crop")
class Crop(ImageOp):
    """The part `width` wide and `height` high whose upper left corner is at (x, y)."""

    ranks = (3, 4)
    x: int = param(low=0, doc="Columns left of it.")
    y: int = param(low=0, doc="Rows above it.")
    width: int = param(low=1, doc="Its columns.")
    height: int = param(low=1, doc="Its rows.")

    def shapes(self, s: Shapes) -> None:
        *batch, h, w, c = self.image(s)
        inside = (h == UNKNOWN or self.y + self.height <= h) and (
            w == UNKNOWN or self.x + self.width <= w
        )
        if not inside:
            expected = f"at least {self.y + self.height} x {self.x + self.width} pixels"
            raise s.refuse("data", f"{expected} for {self}", f"{h} x {w}")
        s["output"] = (*batch, self.height, self.width, c)

    def forward(self, data: Expr) -> Expr:
        lead = (None,) * (data.ndim - 3)
        begin = (*lead, self.y, self.x)
        return ext.slice_(data, begin, (*lead, self.y + self.height, self.x + self.width))


class Flipped(ImageOp):
    """What both directions share."""

    axis: ClassVar[int]

    def shapes(self, s: Shapes) -> None:
        self.image(s)
        s.same("data", "output")

    def forward(self, data: Expr) -> Expr:
        return ext.flip(data, self.axis)


@op("_image_flip_left_right")
class FlipLeftRight(Flipped):
    """The image mirrored from left to right."""

    axis = 1


@op("_image_flip_top_bottom")
class FlipTopBottom(Flipped):
    """The image mirrored from top to bottom."""

    axis = 0


class Coloured(ImageOp):
    """What operators share that change the colours of images with 1 or 3 channels."""

    def shapes(self, s: Shapes) -> None:
        data = self.image(s)
        if data[2] not in CHANNELS:
            raise s.refuse("data", "1 or 3 channels", f"{data[2]} channels")
        s["output"] = data


def exact(dtype: DType) -> DType:
    """The dtype in which colours of `dtype` are computed."""
    return float64 if dtype is float64 else float32


@op("_image_adjust_lighting")
class AdjustLighting(Coloured):
    """Three numbers times the directions in which colours of natural images differ, added."""

    alpha: Floats = param(lengths=(3,), doc="One for each direction.")

    def forward(self, data: Expr) -> Expr:
        if data.shape[2] == 1:
            return fn.identity(data)
        moved = [sum(a * v for a, v in zip(self.alpha, row, strict=True)) for row in LIGHT]
        x = cast(data, exact(data.dtype))
        return cast(x + per_channel(moved, x, -1), data.dtype)
