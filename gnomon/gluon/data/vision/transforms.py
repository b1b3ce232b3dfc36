"""Transforms of images, as blocks: images are (height, width, channels), tensors channels first."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from gnomon import image
from gnomon import ndarray as nd
from gnomon.base import ParamError, ShapeError, complaint
from gnomon.gluon.block import Block, HybridBlock
from gnomon.gluon.nn import HybridSequential, Sequential
from gnomon.ops.fields import Field

__all__ = [
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "ToTensor",
]

Sizes = int | Sequence[int]


class Compose(Sequential):
    """Transforms one after the other; neighbours that can be compiled are.

    >>> from gnomon import nd
    >>> change = Compose([Resize(4), ToTensor(), Normalize(0.5, 0.5)])
    >>> change(nd.ones((8, 6, 3), dtype="uint8")).shape
    (3, 4, 4)
    """

    def __init__(self, transforms: Sequence[Any]) -> None:
        super().__init__()
        run: list[Any] = []
        for each in [*transforms, None]:
            if isinstance(each, HybridBlock):
                run.append(each)
                continue
            self._add_run(run)
            run = []
            if each is not None:
                self.add(each)

    def _add_run(self, run: list[Any]) -> None:
        """Add neighbours as one block."""
        if len(run) > 1:
            joined = HybridSequential()
            for each in run:
                joined.add(each)
            joined.hybridize()
            self.add(joined)
        elif run:
            run[0].hybridize()
            self.add(run[0])


class RandomApply(Sequential):
    """A transform that is applied with probability `p`, else left out."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, x: Any) -> Any:
        """The image, transformed or not."""
        return self.transforms(x) if np.random.rand() < self.p else x


class Cast(HybridBlock):
    """Another dtype."""

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.cast(x, np.dtype(self._dtype).name)


class ToTensor(HybridBlock):
    """Channels first, and numbers of 0 to 255 divided by 255, as float32."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.to_tensor(x)


class Normalize(HybridBlock):
    """Each channel of a tensor minus its mean, divided by its standard deviation."""

    _fields: ClassVar = {
        "mean": Field("_image_normalize.mean"),
        "std": Field("_image_normalize.std"),
    }

    def __init__(self, mean: Any = 0.0, std: Any = 1.0) -> None:
        super().__init__()
        self._mean, self._std = mean, std

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.normalize(x, mean=self._mean, std=self._std)


class Resize(HybridBlock):
    """Another size: (width, height), or one number; with `keep_ratio` for the shorter side."""

    _fields: ClassVar = {
        "size": Field("_image_resize.size"),
        "keep_ratio": Field("_image_resize.keep_ratio"),
        "interpolation": Field("_image_resize.interp"),
    }

    def __init__(self, size: Sizes, keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        self._size, self._keep, self._interpolation = size, keep_ratio, interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        how = {"keep_ratio": self._keep, "interp": self._interpolation}
        return F.image.resize(x, size=self._size, **how)


class CropResize(HybridBlock):
    """The part `width` wide and `height` high at (x, y), resized where `size` is given."""

    def __init__(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        size: Sizes | None = None,
        interpolation: int | None = None,
    ) -> None:
        super().__init__()
        self._x, self._y, self._width, self._height = x, y, width, height
        self._size, self._interpolation = size, interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        part = {"x": self._x, "y": self._y, "width": self._width, "height": self._height}
        found = F.image.crop(x, **part)
        if not self._size:
            return found
        interp = 1 if self._interpolation is None else self._interpolation
        return F.image.resize(found, size=self._size, interp=interp)


class CenterCrop(Block):
    """The middle, (width, height) large; an image that is smaller is cropped and enlarged."""

    _fields: ClassVar = {"size": Field("_image_resize.size")}

    def __init__(self, size: Sizes, interpolation: int = 1) -> None:
        super().__init__()
        self._args = _pair("CenterCrop", size), interpolation

    def forward(self, x: Any) -> Any:
        """The middle of the image."""
        size, interpolation = self._args
        height, width = _image_size("CenterCrop", x)
        wide, high = _fitted((width, height), size)
        left, top = (width - wide) // 2, (height - high) // 2
        return _cut(x, left, top, wide, high, size, interpolation)


class RandomResizedCrop(Block):
    """A random part of the image, resized to (width, height).

    Args:
        size: of the result.
        scale: the least and greatest area of the part, of the image's.
        ratio: the least and greatest ratio of its width to its height.
        interpolation: as for `nd.image.resize`.
    """

    _fields: ClassVar = {"size": Field("_image_resize.size")}

    def __init__(
        self,
        size: Sizes,
        scale: float | Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        areas = (scale, 1.0) if isinstance(scale, Real) else tuple(scale)
        self._args = _pair("RandomResizedCrop", size), areas, tuple(ratio), interpolation

    def forward(self, x: Any) -> Any:
        """The part of the image."""
        size, areas, ratios, interpolation = self._args
        height, width = _image_size("RandomResizedCrop", x)
        low, high = (math.log(r) for r in ratios)
        for _ in range(10):
            area = random.uniform(*areas) * width * height
            ratio = math.exp(random.uniform(low, high))
            wide, tall = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < wide <= width and 0 < tall <= height:
                left, top = random.randint(0, width - wide), random.randint(0, height - tall)
                return _cut(x, left, top, wide, tall, size, interpolation)
        return CenterCrop(size, interpolation)(x)


def _pair(where: str, size: Sizes) -> tuple[int, int]:
    """(width, height)."""
    pair = (size, size) if isinstance(size, Integral) else tuple(size)
    if len(pair) != 2 or min(pair) < 1:
        raise ParamError(complaint(where, "size", "(width, height), or one number", size))
    return pair


def _image_size(where: str, x: Any) -> tuple[int, int]:
    if len(x.shape) != 3:
        got = f"shape {x.shape}"
        raise ShapeError(complaint(where, "x", "an image (height, width, channels)", got))
    return x.shape[:2]


def _fitted(image: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """The largest part of the shape of `size` that is no larger than `size` and the image."""
    shrink = min(1.0, image[0] / size[0], image[1] / size[1])
    return tuple(max(int(s * shrink), 1) for s in size)


def _cut(
    x: Any, left: int, top: int, wide: int, high: int, size: tuple[int, int], interp: int
) -> Any:
    """A part of the image, resized where it has not the size."""
    part = nd.image.crop(x, x=left, y=top, width=wide, height=high)
    return part if (wide, high) == size else nd.image.resize(part, size=size, interp=interp)


class Rotate(Block):
    """A tensor (channels, height, width) of float32, or a batch of them, turned counterclockwise.

    What lies outside of the image counts as 0; `zoom_in` enlarges until nothing of that is seen,
    `zoom_out` makes smaller until nothing is cut off.
    """

    def __init__(
        self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False
    ) -> None:
        super().__init__()
        self._args = (rotation_degrees, *_zoom("Rotate", zoom_in, zoom_out))

    def forward(self, x: Any) -> Any:
        """The image, turned."""
        return image.imrotate(x, *self._args)


class RandomRotation(Block):
    """`Rotate` by a random angle between two limits, drawn by NumPy; one for each of a batch.

    Args:
        angle_limits: the least and the greatest angle in degrees.
        zoom_in, zoom_out: as for `Rotate`.
        rotate_with_proba: the probability of turning at all.
    """

    def __init__(
        self,
        angle_limits: tuple[float, float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ) -> None:
        super().__init__()
        where = "RandomRotation"
        if not (isinstance(angle_limits, (list, tuple)) and len(angle_limits) == 2):
            raise ParamError(complaint(where, "angle_limits", "two numbers", angle_limits))
        if not angle_limits[0] < angle_limits[1]:
            raise ParamError(complaint(where, "angle_limits", "the lower one first", angle_limits))
        if not 0 <= rotate_with_proba <= 1:
            got = rotate_with_proba
            raise ParamError(complaint(where, "rotate_with_proba", "from 0 to 1", got))
        self._args = (tuple(angle_limits), *_zoom(where, zoom_in, zoom_out))
        self._rotate_with_proba = rotate_with_proba

    def forward(self, x: Any) -> Any:
        """The image, turned or not."""
        if np.random.random() >= self._rotate_with_proba:
            return x
        return image.random_rotate(x, *self._args)


def _zoom(where: str, zoom_in: bool, zoom_out: bool) -> tuple[bool, bool]:
    if zoom_in and zoom_out:
        raise ParamError(complaint(where, "zoom_out", "False beside zoom_in", True))
    return zoom_in, zoom_out


class RandomFlipLeftRight(HybridBlock):
    """The image, or as likely the image mirrored from left to right."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """The image, or as likely the image mirrored from top to bottom."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_top_bottom(x)


class Factor(HybridBlock):
    """What transforms share whose factor is at most `width` away from 1."""

    _what: str

    def __init__(self, width: float) -> None:
        super().__init__()
        if width < 0:
            raise ParamError(complaint(type(self).__name__, self._what, "at least 0", width))
        self._args = max(0, 1 - width), 1 + width

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        low, high = self._args
        change = getattr(F.image, f"random_{self._what}")
        return change(x, min_factor=low, max_factor=high)


class RandomBrightness(Factor):
    """Colours times a random factor."""

    _what = "brightness"

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness)


class RandomContrast(Factor):
    """Colours moved away from their mean by a random factor."""

    _what = "contrast"

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast)


class RandomSaturation(Factor):
    """Colours moved away from gray by a random factor."""

    _what = "saturation"

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation)


class RandomHue(Factor):
    """Hues turned by a random part of the circle of colours."""

    _what = "hue"

    def __init__(self, hue: float) -> None:
        super().__init__(hue)


class RandomColorJitter(HybridBlock):
    """Brightness, contrast, saturation and hue changed at random, in random order."""

    def __init__(
        self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0
    ) -> None:
        super().__init__()
        self._args = brightness, contrast, saturation, hue

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """Random numbers times the directions in which colours of natural images differ, added."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_lighting(x, alpha_std=self._alpha)
