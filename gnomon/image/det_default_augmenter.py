"""What `ImageDetRecordIter` does to an image and the boxes in it: MXNet's `det_aug_default`.

In this order: shorter edge to `resize`; hue, lightness, saturation and contrast; mirror; a larger
canvas; a crop that suits the objects; the wanted size. Random numbers are an image's own.

Objects are rows `(class, left, top, right, bottom, ...)` as shares of the image's size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gnomon.base import ParamError, complaint
from gnomon.image.codec import Image
from gnomon.image.default_augmenter import AUTO, LINEAR, RANDOM, Generator, mirrored, resized
from gnomon.ops.param import Dims, Floats, param
from gnomon.recordio.header import opencv

Objects = np.ndarray[Any, Any]


class Sampler(NamedTuple):
    """What one crop sampler draws, and asks of a window: ranges of least and most."""

    scale: tuple[float, float]
    ratio: tuple[float, float]
    overlap: tuple[float, float]
    sample: tuple[float, float]
    object: tuple[float, float]
    trials: int


class DetDefaultAugmenter:
    """The options, and `augment`, which applies them to an image and its objects.

    There are `num_crop_sampler` samplers; options of the crop are one value for each, or one for
    all. A sampler draws windows, `scale` times the image's size and `aspect_ratio` times as wide
    as high, up to `max_crop_trials` times, until one suits: some object has an overlap
    with it (intersection over union), a share of the window (sample coverage) and a share of itself
    in the window (object coverage) in the ranges. One of the windows found is taken.
    """

    resize: int = param(-1, doc="Size of the shorter edge at first; -1 leaves it.")
    rand_crop_prob: float = param(0.0, doc="Probability of a crop.")
    min_crop_scales: Floats = param((0.0,), doc="Smallest scales of crops.")
    max_crop_scales: Floats = param((1.0,), doc="Largest scales of crops.")
    min_crop_aspect_ratios: Floats = param((1.0,), doc="Least width of a crop for its height.")
    max_crop_aspect_ratios: Floats = param((1.0,), doc="Greatest width of a crop for its height.")
    min_crop_overlaps: Floats = param((0.0,), doc="Least overlaps of crop and object.")
    max_crop_overlaps: Floats = param((1.0,), doc="Greatest overlaps of crop and object.")
    min_crop_sample_coverages: Floats = param((0.0,), doc="Least shares of crops in an object.")
    max_crop_sample_coverages: Floats = param((1.0,), doc="Greatest shares of crops in an object.")
    min_crop_object_coverages: Floats = param((0.0,), doc="Least shares of an object in crops.")
    max_crop_object_coverages: Floats = param((1.0,), doc="Greatest shares of an object in crops.")
    num_crop_sampler: int = param(1, low=1, doc="Number of crop samplers.")
    crop_emit_mode: str = param(
        "center", choices=("center", "overlap"), doc="Objects that stay: by centre, or by share."
    )
    emit_overlap_thresh: float = param(0.3, low=0, doc="Least share of an object that stays.")
    max_crop_trials: Dims = param((25,), doc="Windows that each sampler draws at most.")
    rand_pad_prob: float = param(0.0, doc="Probability of a larger canvas.")
    max_pad_scale: float = param(1.0, high=1000, doc="Largest canvas, in sizes of the image.")
    max_random_hue: int = param(0, doc="How much the hue may change, of 180.")
    random_hue_prob: float = param(0.0, doc="Probability of that.")
    max_random_saturation: int = param(0, doc="How much the saturation may change, of 255.")
    random_saturation_prob: float = param(0.0, doc="Probability of that.")
    max_random_illumination: int = param(0, doc="How much the lightness may change, of 255.")
    random_illumination_prob: float = param(0.0, doc="Probability of that.")
    max_random_contrast: float = param(0.0, doc="How much the contrast may change.")
    random_contrast_prob: float = param(0.0, doc="Probability of that.")
    rand_mirror_prob: float = param(0.0, doc="Probability to mirror.")
    fill_value: int = param(127, doc="Colour of a larger canvas.")
    inter_method: int = param(LINEAR, choices=(*range(5), AUTO, RANDOM), doc="Interpolation.")
    resize_mode: str = param(
        "force", choices=("fit", "force", "shrink"),
        doc="To the wanted size; into it in proportion; into it if it is larger.",
    )  # fmt: skip

    def samplers(self) -> list[Sampler]:
        """The crop samplers; ParamError where their options contradict each other."""
        names = ("scales", "aspect_ratios", "overlaps", "sample_coverages", "object_coverages")
        columns = []
        for name in names:
            low, high = (self._each(f"{end}_crop_{name}") for end in ("min", "max"))
            for a, b in zip(low, high, strict=True):
                if not 0 <= a <= b:
                    where, field = type(self).__name__, f"max_crop_{name}"
                    raise ParamError(complaint(where, field, f"from min_crop_{name}={a} on", b))
            columns.append(list(zip(low, high, strict=True)))
        return [Sampler(*row) for row in zip(*columns, self._each("max_crop_trials"), strict=True)]

    def _each(self, name: str) -> tuple[Any, ...]:
        """The values of an option, one for each sampler."""
        values, count = getattr(self, name), self.num_crop_sampler
        if len(values) not in (1, count):
            expected = f"{count} values, one for each of num_crop_sampler, or one for all"
            raise ParamError(complaint(type(self).__name__, name, expected, values))
        return tuple(values) * (count if len(values) == 1 else 1)

    def augment(
        self, image: Image, objects: Objects, size: tuple[int, int], rng: Generator
    ) -> tuple[Image, Objects]:
        """The image, of the wanted (height, width) or smaller, and the objects that are left."""
        cv2 = opencv(type(self).__name__)
        if self.resize > 0:
            h, w = image.shape[:2]
            side = self.resize
            to = (side, h * side // w) if h > w else (w * side // h, side)
            image = resized(cv2, image, *to, self.inter_method, rng)
        if image.shape[2] == 3:
            image = self._coloured(cv2, image, rng)
        if rng.random() < self.rand_mirror_prob:
            image, objects = mirrored(cv2, image), objects.copy()
            objects[:, [1, 3]] = 1 - objects[:, [3, 1]]
        if self.max_pad_scale > 1 and rng.random() < self.rand_pad_prob:
            image, objects = self._padded(image, objects, rng)
        if rng.random() < self.rand_crop_prob:
            image, objects = self._cropped(image, objects, rng)
        return self._fitted(cv2, image, size, rng), objects

    def _coloured(self, cv2: Any, image: Image, rng: Generator) -> Image:
        change = [
            round(float(rng.uniform(-most, most))) if rng.random() < probability else 0
            for most, probability in (
                (self.max_random_hue, self.random_hue_prob),
                (self.max_random_illumination, self.random_illumination_prob),
                (self.max_random_saturation, self.random_saturation_prob),
            )
        ]
        if any(change):
            hls = cv2.cvtColor(image, cv2.COLOR_RGB2HLS).astype(np.int32) + change
            hls = np.clip(hls, 0, [180, 255, 255]).astype(np.uint8)
            image = cv2.cvtColor(hls, cv2.COLOR_HLS2RGB)
        if rng.random() < self.random_contrast_prob:
            sharper = 1 + rng.uniform(-self.max_random_contrast, self.max_random_contrast)
            image = cv2.convertScaleAbs(image, alpha=max(sharper, 0.0))
        return image

    def _padded(self, image: Image, objects: Objects, rng: Generator) -> tuple[Image, Objects]:
        """The image somewhere on a larger canvas."""
        scale = float(rng.uniform(1, self.max_pad_scale))
        h, w, channels = image.shape
        height, width = int(h * scale), int(w * scale)
        y, x = (int(rng.integers(0, n + 1)) for n in (height - h, width - w))
        canvas = np.full((height, width, channels), self.fill_value, np.uint8)
        canvas[y : y + h, x : x + w] = image
        objects = objects.copy()
        objects[:, [1, 3]] = (objects[:, [1, 3]] * w + x) / width
        objects[:, [2, 4]] = (objects[:, [2, 4]] * h + y) / height
        return canvas, objects

    def _cropped(self, image: Image, objects: Objects, rng: Generator) -> tuple[Image, Objects]:
        """A window that a sampler found, and the objects in it; all of it where none did."""
        h, w = image.shape[:2]
        boxes = objects[:, 1:5]
        found = []
        for sampler in self._samplers:
            suitable = windows(sampler, boxes, w / h, rng)
            found += islice((box for box in suitable if self._staying(boxes, box).any()), 1)
        if not found:
            return image, objects
        box = found[int(rng.integers(0, len(found)))]
        left, top, right, bottom = box
        inside = objects[self._staying(boxes, box)].copy()
        sides = np.tile(box[2:] - box[:2], 2)
        inside[:, 1:5] = np.clip((inside[:, 1:5] - np.tile(box[:2], 2)) / sides, 0, 1)
        x, y = int(left * w), int(top * h)
        wide, high = max(1, int((right - left) * w)), max(1, int((bottom - top) * h))
        return image[y : y + high, x : x + wide], inside

    def _staying(self, boxes: Objects, box: Objects) -> Objects:
        """Which objects stay in a window."""
        if self.crop_emit_mode == "center":
            middle = (boxes[:, :2] + boxes[:, 2:]) / 2
            inside: Objects = ((middle >= box[:2]) & (middle <= box[2:])).all(axis=1)
            return inside
        return _intersections(boxes, box) > self.emit_overlap_thresh * _areas(boxes)

    def _fitted(self, cv2: Any, image: Image, size: tuple[int, int], rng: Generator) -> Image:
        height, width = size
        h, w = image.shape[:2]
        if self.resize_mode != "force":
            share = min(height / h, width / w)
            if self.resize_mode == "shrink":
                share = min(share, 1.0)
            height, width = max(1, int(h * share)), max(1, int(w * share))
        return resized(cv2, image, width, height, self.inter_method, rng)


def windows(
    sampler: Sampler, boxes: Objects, proportion: float, rng: Generator
) -> Iterator[Objects]:
    """Windows (left, top, right, bottom), in shares, that suit the objects, drawn one by one.

    `proportion` is the image's width for its height. A window is never larger than the image.
    """
    areas = _areas(boxes)
    for _ in range(sampler.trials):
        scale = float(rng.uniform(*sampler.scale))
        if scale <= 0:
            continue
        low = max(sampler.ratio[0] / proportion, scale * scale)
        high = min(sampler.ratio[1] / proportion, 1 / (scale * scale))
        # where no window of this scale has the ratio, one between what is asked and what fits
        root = math.sqrt(low + float(rng.random()) * (high - low))
        width, height = min(1.0, scale * root), min(1.0, scale / root)
        left, top = rng.uniform(0, 1 - width), rng.uniform(0, 1 - height)
        box = np.array([left, top, left + width, top + height])
        shared = _intersections(boxes, box)
        suits = np.ones(len(boxes), bool)
        for (least, most), values in (
            (sampler.overlap, shared / (areas + width * height - shared)),
            (sampler.sample, shared / (width * height)),
            (sampler.object, shared / areas),
        ):
            values = np.minimum(values, 1)  # an object that is all in a window: 1, not 1 + 1e-7
            suits &= (values >= least) & (values <= most)
        if suits.any():
            yield box


def _areas(boxes: Objects) -> Objects:
    return np.maximum(boxes[:, 2] - boxes[:, 0], 0) * np.maximum(boxes[:, 3] - boxes[:, 1], 0)


def _intersections(boxes: Objects, box: Objects) -> Objects:
    low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
    sides: Objects = np.maximum(high - low, 0)
    return sides[:, 0] * sides[:, 1]
