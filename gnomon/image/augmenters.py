"""Augmenters: objects that change an image, at random or not, called one after the other."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import ParamError, check_kind, complaint, shown
from gnomon.ground.arguments import CheckedArguments
from gnomon.image import functions as fn
from gnomon.image.default_augmenter import EIGENVALUES, EIGENVECTORS

GREY = np.array([0.299, 0.587, 0.114])
TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
FROM_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])
MEAN, STD = np.array([123.68, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])


class Augmenter(CheckedArguments):
    """Base: a subclass hands its settings to this constructor by name, and defines `__call__`."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {k: plain(v) for k, v in kwargs.items()}

    def dumps(self) -> Any:
        """JSON of name and settings.

        >>> ResizeAug(9).dumps()
        '["resizeaug", {"size": 9, "interp": 2}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: Any) -> Any:
        """The changed image."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__(src)")


def plain(value: Any) -> Any:
    """A setting as JSON holds it."""
    value = value.asnumpy() if isinstance(value, nd.NDArray) else value
    return value.tolist() if isinstance(value, np.ndarray) else value


class SequentialAug(Augmenter):
    """Augmenters one after the other."""

    def __init__(self, ts: Sequence[Augmenter]) -> None:
        super().__init__()
        check_kind(type(self).__name__, "ts", ts, (list, tuple), "a list of augmenters")
        for each in ts:
            if not callable(each):
                raise TypeError(complaint(type(self).__name__, "ts", "augmenters", shown(each)))
        self.ts = list(ts)

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [each.dumps() for each in self.ts]]

    def __call__(self, src: Any) -> Any:
        for each in self.ts:
            src = each(src)
        return src


class RandomOrderAug(SequentialAug):
    """Augmenters in an order of chance."""

    def __call__(self, src: Any) -> Any:
        random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(Augmenter):
    """The shorter edge to `size`."""

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        fn.check_sizes("ResizeAug", "size", size, 1)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> Any:
        return fn.resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """To `size` (width, height), whatever the proportions."""

    def __init__(self, size: tuple[int, int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        fn.check_sizes(type(self).__name__, "size", size, 2)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> Any:
        return fn.imresize(src, *self.size, interp=self.interp)


class RandomCropAug(ForceResizeAug):
    """A part of `size` at random."""

    def __call__(self, src: Any) -> Any:
        return fn.random_crop(src, self.size, self.interp)[0]


class CenterCropAug(ForceResizeAug):
    """The middle, in `size`."""

    def __call__(self, src: Any) -> Any:
        return fn.center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """A part of random area and proportion, in `size`."""

    def __init__(
        self, size: tuple[int, int], area: Any, ratio: tuple[float, float], interp: int = 2,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        area = kwargs.pop("min_area", area)
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        fn.check_sizes("RandomSizedCropAug", "size", size, 2)
        self.size, self.area, self.ratio, self.interp = size, area, ratio, interp

    def __call__(self, src: Any) -> Any:
        return fn.random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class HorizontalFlipAug(Augmenter):
    """Mirrored, with the probability `p`."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any) -> Any:
        return nd.flip(_array(self, src), axis=1) if random.random() < self.p else src


class CastAug(Augmenter):
    """To another dtype."""

    def __init__(self, typ: Any = "float32") -> None:
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: Any) -> Any:
        return _array(self, src).astype(self.typ)


def _array(augmenter: Augmenter, src: Any) -> Any:
    """An image; TypeError where it is no NDArray."""
    check_kind(type(augmenter).__name__, "src", src, nd.NDArray, "an image, an NDArray")
    return src


def _floats(augmenter: Augmenter, src: Any) -> Any:
    """`src`; ParamError where its colours have no fractions, which would be lost."""
    if not np.issubdtype(_array(augmenter, src).dtype, np.floating):
        expected = "an image of floats (CastAug gives one)"
        name = type(augmenter).__name__
        raise ParamError(complaint(name, "src", expected, np.dtype(src.dtype).name))
    return src


def _share(most: float) -> float:
    """How much of a colour stays."""
    return 1.0 + random.uniform(-most, most)


class BrightnessJitterAug(Augmenter):
    """All colours times 1, give or take `brightness`."""

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: Any) -> Any:
        return _floats(self, src) * _share(self.brightness)


class ContrastJitterAug(Augmenter):
    """Colours nearer to, or farther from, the mean grey."""

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def __call__(self, src: Any) -> Any:
        share = _share(self.contrast)
        grey = float((fn.values("ContrastJitterAug", _floats(self, src)) @ GREY).mean())
        return src * share + (1 - share) * grey


class SaturationJitterAug(Augmenter):
    """Colours nearer to, or farther from, each pixel's grey."""

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def __call__(self, src: Any) -> Any:
        share = _share(self.saturation)
        grey = (fn.values("SaturationJitterAug", _floats(self, src)) @ GREY)[:, :, None]
        return src * share + nd.array(grey, dtype=src.dtype) * (1 - share)


class HueJitterAug(Augmenter):
    """Hues turned by up to `hue` of half a circle, in the colour space YIQ."""

    def __init__(self, hue: float) -> None:
        super().__init__(hue=hue)
        self.hue = hue

    def __call__(self, src: Any) -> Any:
        angle = random.uniform(-self.hue, self.hue) * np.pi
        turn = np.eye(3)
        turn[1:, 1:] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        change = (FROM_YIQ @ turn @ TO_YIQ).T
        return nd.dot(_floats(self, src), nd.array(change, dtype=src.dtype))


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation, in an order of chance."""

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        pairs = (
            (BrightnessJitterAug, brightness),
            (ContrastJitterAug, contrast),
            (SaturationJitterAug, saturation),
        )
        super().__init__([kind(most) for kind, most in pairs if most > 0])


class LightingAug(Augmenter):
    """Noise along the directions in which colours differ most (AlexNet's)."""

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any) -> None:
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd = alphastd
        self.eigval, self.eigvec = np.array(eigval), np.array(eigvec)

    def __call__(self, src: Any) -> Any:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        return _floats(self, src) + nd.array(self.eigvec @ (alpha * self.eigval), dtype=src.dtype)


class ColorNormalizeAug(Augmenter):
    """`(x - mean) / std` for each channel."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (None if x is None else nd.array(x) for x in (mean, std))

    def __call__(self, src: Any) -> Any:
        return fn.color_normalize(_array(self, src), self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Grey in all channels, with the probability `p`."""

    MIX = np.repeat([[0.21], [0.72], [0.07]], 3, axis=1)

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any) -> Any:
        if random.random() >= self.p:
            return src
        return nd.dot(_floats(self, src), nd.array(self.MIX, dtype=src.dtype))


def CreateAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """The usual augmenters, in order, for images of `data_shape` (channels, height, width).

    `mean` and `std` of True are those of ImageNet.

    >>> [type(each).__name__ for each in CreateAugmenter((3, 8, 8), rand_mirror=True)]
    ['CenterCropAug', 'HorizontalFlipAug', 'CastAug']
    """
    if not isinstance(data_shape, (tuple, list)) or len(data_shape) != 3:
        expected, got = "channels, height and width", shown(data_shape)
        raise ParamError(complaint("CreateAugmenter", "data_shape", expected, got))
    if rand_resize and not rand_crop:
        raise ParamError(complaint("CreateAugmenter", "rand_crop", "True with rand_resize", False))
    size = (data_shape[2], data_shape[1])
    found: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        found.append(RandomSizedCropAug(size, 0.08, (3 / 4, 4 / 3), inter_method))
    else:
        found.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        found.append(HorizontalFlipAug(0.5))
    found.append(CastAug())
    mean, std = (np.float32(x) if y is True else y for x, y in ((MEAN, mean), (STD, std)))
    return found + colours(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)


def colours(
    brightness: float, contrast: float, saturation: float, hue: float, pca_noise: float,
    rand_gray: float, mean: Any, std: Any,
) -> list[Augmenter]:  # fmt: skip
    """The usual augmenters of colours, in order, for images of floats."""
    found: list[Augmenter] = []
    if brightness or contrast or saturation:
        found.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        found.append(HueJitterAug(hue))
    if pca_noise > 0:
        found.append(LightingAug(pca_noise, EIGENVALUES, EIGENVECTORS))
    if rand_gray > 0:
        found.append(RandomGrayAug(rand_gray))
    mean = MEAN if mean is True else mean
    std = STD if std is True else std
    if mean is not None or std is not None:
        found.append(ColorNormalizeAug(mean, std))
    return found
