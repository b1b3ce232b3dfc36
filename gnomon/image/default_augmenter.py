"""What `ImageRecordIter` does to an image before it is a row of a batch: MXNet's `aug_default`.

In this order: shorter edge to `resize`; rotation, shear, scale and aspect; padding; a crop of the
size that is wanted, at random or from the centre; brightness, contrast, saturation; hue, saturation
and lightness; noise along the colours' main directions. Without options an image is cropped from
its centre, after it was enlarged where it is too small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.base import ParamError, complaint
from gnomon.ground.record import cached_property
from gnomon.image.codec import Image
from gnomon.image.warp import warp_affine
from gnomon.ops.param import param
from gnomon.recordio.header import opencv

Generator = np.random.Generator
GREY = np.array([0.114, 0.587, 0.299], np.float32)  # of red, green, blue: MXNet's order
HLS_DRAWS = np.array([0.8, 0.2])  # MXNet's shifts are sums of two uniform draws, with these weights
HLS_TOP = np.array([180, 255, 255], np.int32)
NEAREST, LINEAR, CUBIC, AREA, LANCZOS, AUTO, RANDOM = 0, 1, 2, 3, 4, 9, 10
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
)


class DefaultAugmenter:
    """The options, and `augment`, which applies them with one image's own random numbers."""

    resize: int = param(-1, doc="Size of the shorter edge at first; -1 leaves it.")
    rand_crop: bool = param(False, doc="Crop at random, not from the centre.")
    random_resized_crop: bool = param(False, doc="Crop a random part of the area, and resize it.")
    max_rotate_angle: int = param(0, doc="Rotate by up to so many whole degrees.")
    rotate: int = param(-1, doc="Rotate by so many degrees; -1 for none.")
    max_aspect_ratio: float = param(0.0, doc="How far the aspect ratio may change.")
    min_aspect_ratio: float | None = param(None, doc="Least ratio; 1 - max_aspect_ratio if None.")
    max_shear_ratio: float = param(0.0, doc="How far to shear.")
    max_crop_size: int = param(-1, doc="Largest crop, resized to the wanted size; -1 for none.")
    min_crop_size: int = param(-1, doc="Smallest crop.")
    max_random_scale: float = param(1.0, doc="Largest scale.")
    min_random_scale: float = param(1.0, doc="Smallest scale.")
    max_random_area: float = param(1.0, doc="Largest part of the area for random_resized_crop.")
    min_random_area: float = param(1.0, doc="Smallest part of the area.")
    max_img_size: float = param(1e10, doc="Largest side after rotation and scale.")
    min_img_size: float = param(0.0, doc="Smallest side after rotation and scale.")
    brightness: float = param(0.0, low=0, doc="How much brightness may change.")
    contrast: float = param(0.0, low=0, doc="How much contrast may change.")
    saturation: float = param(0.0, low=0, doc="How much saturation may change.")
    pca_noise: float = param(0.0, low=0, doc="Deviation of noise along the main colours.")
    random_h: int = param(0, low=0, doc="How much the hue may change, of 180.")
    random_s: int = param(0, low=0, doc="How much the saturation may change, of 255.")
    random_l: int = param(0, low=0, doc="How much the lightness may change, of 255.")
    fill_value: int = param(255, low=0, high=255, doc="Colour of what is padded.")
    inter_method: int = param(LINEAR, choices=(*range(5), AUTO, RANDOM), doc="Interpolation.")
    pad: int = param(0, low=0, doc="Pixels to pad on each side.")

    def check_crop(self, height: int, width: int) -> None:
        """ParamError where options contradict each other."""
        where = type(self).__name__
        if self.random_resized_crop:
            self._check_random_area(where)
        if self.max_crop_size != -1 and not 0 < self.min_crop_size <= self.max_crop_size:
            expected = f"from 1 to max_crop_size={self.max_crop_size}"
            raise ParamError(complaint(where, "min_crop_size", expected, self.min_crop_size))

    def _check_random_area(self, where: str) -> None:
        for name in ("rand_crop", "max_crop_size", "min_crop_size", "max_random_scale",
                     "min_random_scale"):  # fmt: skip
            if getattr(self, name) != self.fields[name].default:
                expected = f"{self.fields[name].default} beside random_resized_crop"
                raise ParamError(complaint(where, name, expected, getattr(self, name)))
        least, most = self._ratios()
        if not 0 < least <= most:
            expected = "above 0 and at most max_aspect_ratio"
            raise ParamError(complaint(where, "min_aspect_ratio", expected, least))
        if self.min_random_area > self.max_random_area:
            expected = f"at most max_random_area={self.max_random_area}"
            raise ParamError(complaint(where, "min_random_area", expected, self.min_random_area))

    def augment(self, image: Image, size: tuple[int, int], rng: Generator) -> Image:
        """The image in the wanted (height, width), its channels as they are."""
        cv2 = opencv(type(self).__name__)
        if self.resize > 0:
            h, w = image.shape[:2]
            side = self.resize
            to = (side, h * side // w) if h > w else (w * side // h, side)
            image = self._resized(cv2, image, *to, rng)
        if self._warps:
            image = self._warped(cv2, image, rng)
        if self.pad:
            around = (self.pad,) * 4
            image = with_axes(
                cv2.copyMakeBorder(image, *around, cv2.BORDER_CONSTANT, value=self._filling())
            )
        image = self._cropped(cv2, image, size, rng)
        if image.shape[2] == 3:
            image = self._coloured(cv2, image, rng)
        return image

    def _resized(self, cv2: Any, image: Image, width: int, height: int, rng: Generator) -> Image:
        return resized(cv2, image, width, height, self.inter_method, rng)

    @cached_property
    def _warps(self) -> bool:
        plain = (self.max_rotate_angle, self.max_shear_ratio, max(self.rotate, 0))
        ratio = (self.max_aspect_ratio or self.min_aspect_ratio) and not self.random_resized_crop
        scaled = (self.max_random_scale, self.min_random_scale) != (1, 1)
        bounded = self.max_img_size != 1e10 or self.min_img_size != 0
        return any(plain) or bool(ratio) or scaled or bounded

    def _ratios(self) -> tuple[float, float]:
        """The least and the largest aspect ratio."""
        if self.min_aspect_ratio is None:
            return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio
        return self.min_aspect_ratio, self.max_aspect_ratio

    def _warped(self, cv2: Any, image: Image, rng: Generator) -> Image:
        """Rotated, sheared and scaled about its centre, on a canvas of the scaled size."""
        h, w = image.shape[:2]
        shear = float(rng.uniform(-1, 1)) * self.max_shear_ratio
        most = abs(self.max_rotate_angle)  # in whole degrees
        degrees = int(rng.integers(-most, most, endpoint=True)) if most else 0
        angle = math.radians(self.rotate if self.rotate > 0 else degrees)
        scale = between(rng, self.min_random_scale, self.max_random_scale)
        ratio = 1.0 if self.random_resized_crop else between(rng, *self._ratios())
        tall = 2 * scale / (1 + ratio)
        wide = ratio * tall
        low, high = self.min_img_size, self.max_img_size
        size = [max(low, min(high, scale * n)) for n in (w, h)]
        cos, sin = math.cos(angle), math.sin(angle)
        turn = np.array(
            [
                [tall * cos - shear * sin * wide, tall * sin + shear * cos * wide],
                [-sin * wide, cos * wide],
            ]
        )
        shift = (np.array(size) - turn @ [w, h]) / 2
        way = interpolation(self.inter_method, (w, h), size, rng)
        whole = int(size[0]), int(size[1])
        matrix = np.column_stack([turn, shift])
        done = warp_affine(cv2, image, matrix, whole, way, self._filling())
        return with_axes(done)

    def _filling(self) -> tuple[int, ...]:
        """The colour of what is padded, its alpha 0 as in MXNet."""
        return (self.fill_value,) * 3 + (0,)

    def _cropped(self, cv2: Any, image: Image, size: tuple[int, int], rng: Generator) -> Image:
        height, width = size
        if self.random_resized_crop:
            part = self._random_area(image, rng)
            if part is not None:
                return self._resized(cv2, part, width, height, rng)
        if self.max_crop_size > 0:
            side = int(rng.integers(self.min_crop_size, self.max_crop_size + 1))
            image = self._covering(cv2, image, side, side, rng)
            part = self._window(image, side, side, rng)
            return self._resized(cv2, part, width, height, rng)
        return self._window(self._covering(cv2, image, height, width, rng), height, width, rng)

    def _covering(self, cv2: Any, image: Image, height: int, width: int, rng: Generator) -> Image:
        """The image, enlarged where it is smaller than that: to the height first, as in MXNet.

        The method is the one that suits the change from the image to the wanted size.
        """
        h, w = image.shape[:2]
        if h >= height and w >= width:
            return image
        method = interpolation(self.inter_method, (w, h), (width, height), rng)
        if h < height:
            h, w = height, w * height // h
            image = resized(cv2, image, w, h, method, rng)
        if w < width:
            image = resized(cv2, image, width, h * width // w, method, rng)
        return image

    def _window(self, image: Image, height: int, width: int, rng: Generator) -> Image:
        y, x = image.shape[0] - height, image.shape[1] - width  # the last place, and then the first
        if self.rand_crop:
            y, x = int(rng.integers(0, y + 1)), int(rng.integers(0, x + 1))
        else:
            y, x = y // 2, x // 2
        return image[y : y + height, x : x + width]

    def _random_area(self, image: Image, rng: Generator) -> Image | None:
        """A part of random area and aspect; None where that is all, or ten trials do not fit."""
        areas, ratios = (self.min_random_area, self.max_random_area), self._ratios()
        if areas == ratios == (1, 1):
            return None
        h, w = image.shape[:2]
        for _ in range(10):
            area = max(0.0, between(rng, *areas)) * h * w
            ratio = between(rng, *ratios)
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= w and 0 < height <= h:
                y, x = int(rng.integers(0, h - height + 1)), int(rng.integers(0, w - width + 1))
                return image[y : y + height, x : x + width]
        return None

    def _coloured(self, cv2: Any, image: Image, rng: Generator) -> Image:
        if self.brightness or self.contrast or self.saturation:
            image = self._jittered(image.astype(np.float32), rng)
        if self.pca_noise:
            image = self._noised(image, rng)
        if self.random_h or self.random_s or self.random_l:
            hls = cv2.cvtColor(image, cv2.COLOR_RGB2HLS).astype(np.int32)
            most = np.array([self.random_h, self.random_l, self.random_s])
            hls += (most * (HLS_DRAWS @ rng.uniform(-1, 1, (2, 3)))).astype(np.int32)
            np.clip(hls, 0, HLS_TOP, hls)
            image = cv2.cvtColor(hls.astype(np.uint8), cv2.COLOR_HLS2RGB)
        return image

    def _jittered(self, image: Image, rng: Generator) -> Image:
        brighter, sharper, fuller = (1 + rng.uniform(-1, 1, 3) * [
            self.brightness, self.contrast, self.saturation]).astype(np.float32)  # fmt: skip
        image = image * brighter
        if self.contrast:
            image = image * sharper + (1 - sharper) * (image @ GREY).mean()
        if self.saturation:
            image = image * fuller + (1 - fuller) * (image @ GREY)[:, :, None]
        return np.clip(image, 0, 255).round().astype(np.uint8)

    def _noised(self, image: Image, rng: Generator) -> Image:
        """With noise along the main colours; what is behind the point is cut off, as in MXNet."""
        alpha = rng.normal(0, self.pca_noise, 3)
        noise = (EIGENVECTORS @ (alpha * EIGENVALUES)).astype(np.float32)
        return np.clip(image + noise, 0, 255).astype(np.uint8)


def resized(cv2: Any, image: Image, width: int, height: int, method: int, rng: Generator) -> Image:
    """The image in another size; `method` as for `interpolation`."""
    if image.shape[:2] == (height, width):
        return image
    method = interpolation(method, image.shape[1::-1], (width, height), rng)
    return with_axes(cv2.resize(image, (width, height), interpolation=method))


def interpolation(method: int, size: Any, to: Any, rng: Generator) -> int:
    """OpenCV's method from one (width, height) to another, one that suits (9) or any (10)."""
    if method == RANDOM:
        return int(rng.integers(0, 5))
    if method != AUTO:
        return method
    grows = [new > old for old, new in zip(size, to, strict=True)]
    shrinks = [new < old for old, new in zip(size, to, strict=True)]
    return CUBIC if all(grows) else AREA if all(shrinks) else LINEAR


def mirrored(cv2: Any, image: Image) -> Image:
    """The image, left and right exchanged: a copy.

    OpenCV makes it in a fiftieth of the time that copying a view with a negative step takes.
    """
    return with_axes(cv2.flip(image, 1))


def with_axes(image: Image) -> Image:
    """An image of OpenCV's as (height, width, channels)."""
    return image[:, :, None] if image.ndim == 2 else image


def between(rng: Generator, low: float, high: float) -> float:
    """A number drawn between two bounds, which may be exchanged."""
    return low + (high - low) * float(rng.random())
