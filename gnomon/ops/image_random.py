"""Operators that change images at random: what a transform of training data draws anew each time.

What was drawn is a hidden output, so that the gradient belongs to the same draw.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from gnomon.dtype import float32
from gnomon.expr import ext, fn
from gnomon.expr.diff import vjp
from gnomon.expr.node import Expr, cast
from gnomon.ops.image import LIGHT, Coloured, ImageOp, exact, per_channel
from gnomon.ops.infer import Shapes, one_dtype
from gnomon.ops.op import Draws, Op, op
from gnomon.ops.param import param
from gnomon.ops.random import check_range

GRAY = (0.299, 0.587, 0.114)
OUTPUTS = ("output", "draw")


class Changed(Op):
    """What the operators share: `count` numbers drawn, and `changed` by them."""

    count = 1
    types = one_dtype("data", "output", draw=float32)
    num_visible_outputs = 1

    def drawn(self, random: Draws) -> Expr:
        """The numbers."""
        return random.uniform((self.count,), float32)

    def changed(self, data: Expr, draw: list[Expr]) -> Expr:
        """`data` changed by numbers, each as wide as `data`."""
        raise NotImplementedError

    def _with(self, data: Expr, draw: Expr) -> Expr:
        numbers = [
            ext.broadcast_to(ext.slice_(draw, (k,), (k + 1,)), data.shape)
            for k in range(self.count)
        ]
        return self.changed(data, numbers)

    def forward(self, data: Expr, *, random: Draws) -> tuple[Expr, Expr]:
        draw = self.drawn(random)
        return self._with(data, draw), draw

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr | None]:
        made = self._with(inputs[0], outputs[1])
        return (vjp([made], [out_grads[0]], [inputs[0]])[0],)


class RandomFlip(Changed, ImageOp):
    """What both directions share."""

    axis: ClassVar[int]

    def shapes(self, s: Shapes) -> None:
        s["output"] = self.image(s)
        s["draw"] = (self.count,)

    def changed(self, data: Expr, draw: list[Expr]) -> Expr:
        flipped = ext.flip(data, self.axis)
        whole: Expr = fn.where(cast(fn.lt(draw[0], 0.5), data.dtype), flipped, data)
        return whole


@op("_image_random_flip_left_right", outputs=OUTPUTS)
class RandomFlipLeftRight(RandomFlip):
    """The image, or as likely the image mirrored from left to right."""

    axis = 1


@op("_image_random_flip_top_bottom", outputs=OUTPUTS)
class RandomFlipTopBottom(RandomFlip):
    """The image, or as likely the image mirrored from top to bottom."""

    axis = 0


class Recoloured(Changed, Coloured):
    """What operators share whose numbers change colours; images of one channel have one colour."""

    def shapes(self, s: Shapes) -> None:
        Coloured.shapes(self, s)
        s["draw"] = (self.count,)

    def changed(self, data: Expr, draw: list[Expr]) -> Expr:
        x = cast(data, exact(data.dtype))
        return cast(self.colours(x, [cast(d, x.dtype) for d in draw]), data.dtype)

    def colours(self, x: Expr, draw: list[Expr]) -> Expr:
        """The new colours, in the dtype in which they are computed."""
        raise NotImplementedError


class Scaled(Recoloured):
    """What operators share that draw one factor from a range."""

    min_factor: float = param(low=0, doc="The least factor.")
    max_factor: float = param(low=0, doc="The greatest factor.")

    def check(self) -> None:
        check_range(self, "min_factor", "max_factor")

    def drawn(self, random: Draws) -> Expr:
        width = self.max_factor - self.min_factor
        return random.uniform((1,), float32) * width + self.min_factor


def channels(x: Expr) -> tuple[Expr, Expr, Expr]:
    """The three colours, one channel wide: cheaper than a reduction of so short an axis."""
    r, g, b = (ext.slice_(x, (None, None, k), (None, None, k + 1)) for k in range(3))
    return r, g, b


def bright(x: Expr) -> Expr:
    """How bright each pixel is, one channel wide."""
    if x.shape[2] == 1:
        return x
    r, g, b = channels(x)
    return r * GRAY[0] + g * GRAY[1] + b * GRAY[2]


def gray(x: Expr) -> Expr:
    """How bright each pixel is, as wide as `x`."""
    return ext.broadcast_to(bright(x), x.shape)


def brighter(x: Expr, factor: Expr) -> Expr:
    """`x` times the factor."""
    return x * factor


def mean(x: Expr) -> Expr:
    """How bright the image is, as wide as `x`."""
    pixels = max(x.shape[0] * x.shape[1], 1)
    return ext.broadcast_to(ext.reduce(bright(x), "sum", (0, 1, 2)) / pixels, x.shape)


def contrasted(x: Expr, factor: Expr) -> Expr:
    """`x` away from the mean of its brightness by the factor."""
    return x * factor + mean(x) * (1.0 - factor)


def saturated(x: Expr, factor: Expr) -> Expr:
    """`x` away from gray by the factor."""
    return x if x.shape[2] == 1 else x * factor + gray(x) * (1.0 - factor)


def turned(x: Expr, factor: Expr) -> Expr:
    """`x` with its hue turned: 1 is once round the circle of colours."""
    if x.shape[2] == 1:
        return x
    r, g, b = channels(x)
    low, high = fn.minimum(fn.minimum(r, g), b), fn.maximum(fn.maximum(r, g), b)
    chroma = high - low
    safe = fn.where(fn.gt(chroma, 0.0), chroma, 1.0)
    sector = fn.where(fn.eq(high, g), (b - r) / safe + 2.0, (r - g) / safe + 4.0)
    sector = fn.where(fn.eq(high, r), (g - b) / safe, sector)
    hue = ext.broadcast_to(sector, x.shape) + factor * 6.0
    place = hue + per_channel((5.0, 3.0, 1.0), x, -1)
    place = place - fn.floor(place / 6.0) * 6.0
    weight = fn.maximum(fn.minimum(fn.minimum(place, 4.0 - place), 1.0), 0.0)
    whole: Expr = ext.broadcast_to(high, x.shape) - ext.broadcast_to(chroma, x.shape) * weight
    return whole


@op("_image_random_brightness", outputs=OUTPUTS)
class RandomBrightness(Scaled):
    """Colours times a random factor."""

    def colours(self, x: Expr, draw: list[Expr]) -> Expr:
        return brighter(x, draw[0])


@op("_image_random_contrast", outputs=OUTPUTS)
class RandomContrast(Scaled):
    """Colours moved away from their mean by a random factor."""

    def colours(self, x: Expr, draw: list[Expr]) -> Expr:
        return contrasted(x, draw[0])


@op("_image_random_saturation", outputs=OUTPUTS)
class RandomSaturation(Scaled):
    """Colours moved away from gray by a random factor."""

    def colours(self, x: Expr, draw: list[Expr]) -> Expr:
        return saturated(x, draw[0])


@op("_image_random_hue", outputs=OUTPUTS)
class RandomHue(Scaled):
    """Hues turned by a random factor of the circle of colours."""

    def colours(self, x: Expr, draw: list[Expr]) -> Expr:
        return turned(x, draw[0])


@op("_image_random_color_jitter", outputs=OUTPUTS)
class RandomColorJitter(Recoloured):
    """Brightness, contrast, saturation and hue changed at random, in random order."""

    count = 8
    brightness: float = param(low=0, doc="The factor is at most this far from 1.")
    contrast: float = param(low=0, doc="The factor is at most this far from 1.")
    saturation: float = param(low=0, doc="The factor is at most this far from 1.")
    hue: float = param(low=0, doc="At most this much of a turn.")

    def colours(self, x: Expr, draw: list[Expr]) -> Expr:
        rows = zip((self.brightness, self.contrast, self.saturation), _LINEAR, strict=True)
        used = [
            (change, draw[k] * (2.0 * width) + (1.0 - width), draw[4 + k])
            for k, (width, change) in enumerate(rows)
            if width
        ]
        orders = [order for *_, order in used]
        places = [_place(order, orders) for order in orders]
        if not self.hue:
            return _weighed(x, used, places)
        turn, when = draw[3] * (2.0 * self.hue) - self.hue, draw[7]
        early = [fn.where(fn.lt(o, when), p, -1.0) for o, p in zip(orders, places, strict=True)]
        late = [fn.where(fn.ge(o, when), p, -1.0) for o, p in zip(orders, places, strict=True)]
        return _weighed(turned(_weighed(x, used, early), turn), used, late)


# Three changes are linear in the colours, their gray and the image's mean, so any row of them is
# one sum of these three, with weights a, b and c, and a change makes new weights of those before:
# what it finds has `a + b` of the gray and `c` of the mean as gray, and `a + b + c` of it as mean.
Weights = tuple[Any, Any, Any]


def _brighter(f: Expr, a: Any, b: Any, c: Any) -> Weights:
    return a * f, b * f, c * f


def _contrasted(f: Expr, a: Any, b: Any, c: Any) -> Weights:
    return a * f, b * f, c * f + (a + b + c) * (1.0 - f)


def _saturated(f: Expr, a: Any, b: Any, c: Any) -> Weights:
    return a * f, b * f + (a + b) * (1.0 - f), c * f + c * (1.0 - f)


_LINEAR = (_brighter, _contrasted, _saturated)


def _weighed(x: Expr, changes: Sequence[tuple[Any, Expr, Expr]], places: Sequence[Expr]) -> Expr:
    """`x` after the linear changes, each in the turn of its place; -1 is none."""
    weights: Weights = (1.0, 0.0, 0.0)
    for turn in range(len(changes)):
        for (change, factor, _), place in zip(changes, places, strict=True):
            new = zip(change(factor, *weights), weights, strict=True)
            a, b, c = (fn.where(fn.eq(place, float(turn)), now, before) for now, before in new)
            weights = a, b, c
    kinds = {change for change, *_ in changes}
    found: Expr = x * weights[0]
    # otherwise the weight is 0, and what it is of may be infinite because of a single pixel
    if _saturated in kinds:
        found = found + gray(x) * weights[1]
    if _contrasted in kinds:
        found = found + mean(x) * weights[2]
    return found


def _place(order: Expr, others: Sequence[Expr]) -> Expr:
    """How many of `others` are less than `order`."""
    less = [cast(fn.lt(other, order), order.dtype) for other in others]
    return functools.reduce(lambda a, b: a + b, less)


@op("_image_random_lighting", outputs=OUTPUTS)
class RandomLighting(Recoloured):
    """Random numbers times the directions in which colours of natural images differ, added."""

    count = 3
    alpha_std: float = param(0.05, doc="Standard deviation of the numbers.")

    def drawn(self, random: Draws) -> Expr:
        return random.normal((3,), float32) * self.alpha_std

    def colours(self, x: Expr, draw: list[Expr]) -> Expr:
        if x.shape[2] == 1:
            return x
        moved = [d * per_channel([row[k] for row in LIGHT], x, -1) for k, d in enumerate(draw)]
        return functools.reduce(lambda a, b: a + b, moved, x)
