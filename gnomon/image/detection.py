"""Augmenters of images with objects in them: they change an image and its objects' boxes together.

A label is a float32 array with a row for each object, `(class, left, top, right, bottom, ...)`; the
places are shares of the image's width and height. What stands behind them is kept as it is.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import DTypeError, ParamError, complaint
from gnomon.ground.arguments import CheckedArguments
from gnomon.image import augmenters as aug
from gnomon.image import functions as fn

Label = np.ndarray[Any, Any]
Range = tuple[float, float]
SMALLEST = 2  # pixels: an object of fewer cannot be seen, an edge of fewer changes nothing


class DetAugmenter(CheckedArguments):
    """Base: a subclass hands its settings to this constructor by name, and defines `__call__`."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {k: aug.plain(v) for k, v in kwargs.items()}

    def dumps(self) -> Any:
        """JSON of name and settings.

        >>> DetHorizontalFlipAug(0.5).dumps()
        '["dethorizontalflipaug", {"p": 0.5}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: Any, label: Label) -> tuple[Any, Label]:
        """The changed image, and its label."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__(src, label)")


class DetBorrowAug(DetAugmenter):
    """An augmenter of images that leaves objects where they are, shares of the size at least."""

    def __init__(self, augmenter: aug.Augmenter) -> None:
        if not isinstance(augmenter, aug.Augmenter):
            got = type(augmenter).__name__
            raise DTypeError(complaint("DetBorrowAug", "augmenter", "an image.Augmenter", got))
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: Any, label: Label) -> tuple[Any, Label]:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters by chance; none with the probability `skip_prob`."""

    def __init__(self, aug_list: Any, skip_prob: float = 0) -> None:
        super().__init__(skip_prob=skip_prob)
        self.aug_list = list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        for each in self.aug_list:
            if not isinstance(each, DetAugmenter):
                got = type(each).__name__
                where = "DetRandomSelectAug"
                raise ParamError(complaint(where, "aug_list", "image.DetAugmenter alone", got))
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [each.dumps() for each in self.aug_list]]

    def __call__(self, src: Any, label: Label) -> tuple[Any, Label]:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirrored, with the probability `p`."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any, label: Label) -> tuple[Any, Label]:
        if random.random() >= self.p:
            return src, label
        label[:, [1, 3]] = 1 - label[:, [3, 1]]
        return nd.flip(src, axis=1), label


class DetRandomCropAug(DetAugmenter):
    """A part of the image by chance, in which objects are whole enough.

    A part has a width of `aspect_ratio_range` times its height and `area_range` of the image's
    area. It is taken if more than `min_object_covered` of every object that it touches is in it.
    Objects stay of which more than `min_eject_coverage` is left. After `max_attempts` parts that
    do not suit, the image is given as it is.
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ) -> None:
        where = type(self).__name__
        self.aspect_ratio_range = _range(where, "aspect_ratio_range", aspect_ratio_range)
        self.area_range = _range(where, "area_range", area_range)
        self.min_object_covered = min_object_covered
        self.min_eject_coverage = min_eject_coverage
        self.max_attempts = max_attempts
        super().__init__(
            min_object_covered=min_object_covered,
            aspect_ratio_range=self.aspect_ratio_range,
            area_range=self.area_range,
            min_eject_coverage=min_eject_coverage,
            max_attempts=max_attempts,
        )

    def __call__(self, src: Any, label: Label) -> tuple[Any, Label]:
        height, width = src.shape[:2]
        for x, y, w, h in self._places(height, width):
            if self._suits(label, x, y, w, h, height, width):
                left = self._left(label, x / width, y / height, w / width, h / height)
                if len(left):
                    return fn.fixed_crop(src, x, y, w, h), left
        return src, label

    def _places(self, height: int, width: int) -> Iterator[tuple[int, int, int, int]]:
        """Parts (x, y, width, height) of the wanted area and proportions."""
        least, most = (share * height * width for share in self.area_range)
        for _ in range(self.max_attempts):
            ratio = random.uniform(*self.aspect_ratio_range)
            highest = min(height, _fitting(round(math.sqrt(most / ratio)), width, ratio))
            h = min(round(math.sqrt(least / ratio)), highest)
            if h < highest:
                h = random.randint(h, highest)
            if h * round(h * ratio) < least:  # the sizes are whole numbers
                h += 1
            if h * round(h * ratio) > most:
                h -= 1
            w = round(h * ratio)
            if least <= w * h <= most and w <= width and h <= height:
                y = random.randint(0, height - h)
                yield random.randint(0, width - w), y, w, h

    def _suits(self, label: Label, x: int, y: int, w: int, h: int, height: int, width: int) -> bool:
        """Whether the part touches objects, and enough of all that it touches is in it."""
        if w * h < SMALLEST:
            return False
        boxes = label[:, 1:5]
        areas = _areas(boxes)
        seen = areas * width * height > SMALLEST
        window = np.array([x / width, y / height, (x + w) / width, (y + h) / height], label.dtype)
        low = np.maximum(boxes[seen, :2], window[:2])
        high = np.minimum(boxes[seen, 2:], window[2:])
        covered = np.prod(np.maximum(high - low, 0), axis=1) / areas[seen]
        covered = covered[covered > 0]
        return bool(covered.size) and bool(covered.min() > self.min_object_covered)

    def _left(self, label: Label, x: float, y: float, w: float, h: float) -> Label:
        """The objects of which enough is in the part, as shares of its size."""
        moved = label.copy()
        moved[:, [1, 3]] = np.clip((label[:, [1, 3]] - x) / w, 0, 1)
        moved[:, [2, 4]] = np.clip((label[:, [2, 4]] - y) / h, 0, 1)
        before, after = _areas(label[:, 1:5]), _areas(moved[:, 1:5]) * w * h
        kept = (after > 0) & (after > self.min_eject_coverage * before)
        return moved[kept]


class DetRandomPadAug(DetAugmenter):
    """The image somewhere on a larger canvas of one colour.

    The canvas has a width of `aspect_ratio_range` times its height and `area_range` times the
    image's area. `pad_val` is its colour, a number or one for each channel.
    """

    def __init__(
        self,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ) -> None:
        where = type(self).__name__
        self.aspect_ratio_range = _range(where, "aspect_ratio_range", aspect_ratio_range)
        self.area_range = _range(where, "area_range", area_range)
        if self.area_range[1] <= 1:
            expected = "an end above 1: the canvas is larger than the image"
            raise ParamError(complaint(where, "area_range", expected, self.area_range))
        self.pad_val, self.max_attempts = pad_val, max_attempts
        super().__init__(
            aspect_ratio_range=self.aspect_ratio_range,
            area_range=self.area_range,
            max_attempts=max_attempts,
            pad_val=pad_val,
        )

    def __call__(self, src: Any, label: Label) -> tuple[Any, Label]:
        height, width = src.shape[:2]
        for x, y, w, h in self._places(height, width):
            label = label.copy()
            label[:, [1, 3]] = (label[:, [1, 3]] * width + x) / w
            label[:, [2, 4]] = (label[:, [2, 4]] * height + y) / h
            borders = (y, h - height - y, x, w - width - x)
            return fn.copyMakeBorder(src, *borders, values=self.pad_val), label
        return src, label

    def _places(self, height: int, width: int) -> Iterator[tuple[int, int, int, int]]:
        """Where the image may lie on a canvas: (x, y, canvas width, canvas height)."""
        least, most = (share * height * width for share in self.area_range)
        for _ in range(self.max_attempts):
            ratio = random.uniform(*self.aspect_ratio_range)
            h = round(math.sqrt(least / ratio))
            if round(h * ratio) < width:
                h = int((width + 0.499999) / ratio)
            h = max(h, height)
            highest = max(h, round(math.sqrt(most / ratio)))
            if h < highest:
                h = random.randint(h, highest)
            w = round(h * ratio)
            if h - height >= SMALLEST and w - width >= SMALLEST:
                y = random.randint(0, h - height)
                yield random.randint(0, w - width), y, w, h


def _range(where: str, argument: str, given: Any) -> Range:
    """Least and most; both are the same where one number is given."""
    both = tuple(given) if isinstance(given, (tuple, list)) else (given, given)
    low, high = both if len(both) == 2 and all(isinstance(x, Real) for x in both) else (0, 0)
    if not 0 < low <= high:
        expected = "a positive number, or a least and a greatest one"
        raise ParamError(complaint(where, argument, expected, given))
    return low, high


def _fitting(h: int, width: int, ratio: float) -> int:
    """`h`, or the greatest height of a part of these proportions that is not wider than `width`."""
    return int((width + 0.4999999) / ratio) if round(h * ratio) > width else h


def _areas(boxes: Label) -> Label:
    sides: Label = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    return sides[:, 0] * sides[:, 1]


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """One of several `DetRandomCropAug` by chance: lists give each its own settings.

    Raises:
        ParamError: lists of different lengths.
    """
    settings = {
        "min_object_covered": min_object_covered,
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "min_eject_coverage": min_eject_coverage,
        "max_attempts": max_attempts,
    }
    several = {name: value for name, value in settings.items() if isinstance(value, list)}
    count = max([1, *(len(value) for value in several.values())])
    for name, value in several.items():
        if len(value) not in (1, count):
            expected = f"{count} settings, or one"
            where = "CreateMultiRandCropAugmenter"
            raise ParamError(complaint(where, name, expected, f"{len(value)}: {value}"))
    crops = [
        DetRandomCropAug(**{n: several[n][k % len(v)] if n in several else v
                            for n, v in settings.items()})
        for k in range(count)
    ]  # fmt: skip
    return DetRandomSelectAug(crops, skip_prob)


def CreateDetAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: int = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """The usual augmenters, in order, for images of `data_shape` (channels, height, width).

    `rand_crop`, `rand_pad` and `rand_gray` are probabilities; `mean` and `std` of True are those
    of ImageNet.

    >>> [type(each).__name__ for each in CreateDetAugmenter((3, 8, 8), rand_mirror=True)]
    ['DetHorizontalFlipAug', 'DetBorrowAug', 'DetBorrowAug']
    """
    found: list[DetAugmenter] = []
    if resize > 0:
        found.append(DetBorrowAug(aug.ResizeAug(resize, inter_method)))
    if rand_crop > 0:
        crops = CreateMultiRandCropAugmenter(
            min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts,
            1 - rand_crop,
        )  # fmt: skip
        found.append(crops)
    if rand_mirror:
        found.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        found.append(DetRandomSelectAug([pad], 1 - rand_pad))
    plain: list[aug.Augmenter] = [
        aug.ForceResizeAug((data_shape[2], data_shape[1]), inter_method),
        aug.CastAug(),
    ]
    plain += aug.colours(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)
    return found + [DetBorrowAug(each) for each in plain]
