"""Reading, resizing and cropping of images: NDArrays (height, width, channels)."""

from __future__ import annotations

import math
import random
from numbers import Integral, Real
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import ParamError, ShapeError, check_kind, complaint, shown
from gnomon.ground.arguments import checked
from gnomon.ground.files import read_bytes
from gnomon.image.codec import decode
from gnomon.recordio.header import opencv

Sizes = tuple[int, int]
AUTO, RANDOM, AREA, CUBIC, LINEAR = 9, 10, 3, 2, 1


def imdecode(buf: Any, flag: int = 1, to_rgb: bool | int = 1, out: Any = None) -> Any:
    """The image in compressed bytes as uint8; grey where `flag` is 0, as stored where it is -1.

    Raises:
        FormatError: the bytes are no image.
        GnomonError: OpenCV is not installed.
    """
    if isinstance(buf, nd.NDArray):
        buf = buf.asnumpy()
    kinds = (bytes, bytearray, memoryview, np.ndarray)
    check_kind("imdecode", "buf", buf, kinds, "the bytes of a compressed image")
    data = bytes(buf)
    image = decode("imdecode", data, {0: 1, 1: 3}.get(flag, 4), rgb=bool(to_rgb))
    return _result(image, out)


def imread(filename: str, flag: int = 1, to_rgb: bool | int = 1, out: Any = None) -> Any:
    """The image in a file, as `imdecode` gives it.

    Raises:
        GnomonError: the file cannot be read.
    """
    return imdecode(read_bytes("imread", filename), flag, to_rgb, out)


def _result(image: Any, out: Any = None) -> Any:
    made = nd.array(np.ascontiguousarray(image), dtype=image.dtype)
    if out is None:
        return made
    out[:] = made
    return out


def values(where: str, src: Any) -> Any:
    """An image as NumPy's array.

    Raises:
        TypeError: it holds no numbers.
        ShapeError: it has not three axes.
    """
    image = src.asnumpy() if isinstance(src, nd.NDArray) else np.asarray(src)
    if image.dtype.kind not in "biuf":
        raise TypeError(complaint(where, "src", "an image, an NDArray", shown(src)))
    if image.ndim != 3:
        expected = "(height, width, channels)"
        raise ShapeError(complaint(where, "src", expected, f"shape {image.shape}"))
    return image


def check_sizes(where: str, argument: str, given: Any, count: int) -> None:
    """Raises ParamError unless `given` is a size from 1, or two, (width, height)."""
    sizes = given if count > 1 and isinstance(given, (tuple, list)) else (given,)
    whole = all(isinstance(size, Integral) and size > 0 for size in sizes)
    if len(sizes) != count or not whole:
        expected = "a whole number from 1" if count == 1 else "(width, height), each from 1"
        raise ParamError(complaint(where, argument, expected, shown(given)))


def method(interp: int, old: Sizes, new: Sizes) -> int:
    """OpenCV's number of an interpolation; 9 chooses by the (height, width), 10 at random."""
    if interp not in (0, 1, 2, 3, 4, AUTO, RANDOM):
        raise ParamError(complaint("imresize", "interp", "0 to 4, 9 or 10", interp))
    if interp == RANDOM:
        return random.randint(0, 4)
    if interp != AUTO:
        return interp
    if new[0] > old[0] and new[1] > old[1]:
        return CUBIC
    return AREA if new[0] < old[0] and new[1] < old[1] else LINEAR


def _get_interp_method(interp: int, sizes: tuple[int, ...] = ()) -> int:
    """`method` of the sizes (old height, old width, new height, new width), as libraries import it.

    Raises:
        ValueError: an interpolation that is unknown.
    """
    if not sizes and interp == AUTO:
        return CUBIC
    try:
        return method(interp, sizes[:2], sizes[2:]) if sizes else method(interp, (1, 1), (1, 1))
    except ParamError as error:
        raise ValueError(str(error)) from None


def imresize(src: Any, w: int, h: int, interp: int = 1, out: Any = None) -> Any:
    """The image in another size, its dtype kept.

    >>> imresize(nd.ones((4, 6, 3), dtype="uint8"), 3, 2).shape
    (2, 3, 3)

    Raises:
        ParamError: a size below 1, an interpolation that is unknown.
        ShapeError: `src` is no image.
    """
    check_sizes("imresize", "w, h", (w, h), 2)
    return _result(_resized("imresize", values("imresize", src), w, h, interp), out)


def _resized(where: str, image: Any, w: int, h: int, interp: int) -> Any:
    if image.shape[:2] == (h, w):
        return image
    way = method(interp, image.shape[:2], (h, w))
    done = opencv(where).resize(image, (w, h), interpolation=way)
    return done[:, :, None] if done.ndim == 2 else done


def copyMakeBorder(
    src: Any, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0,
    values: Any = (), out: Any = None,
) -> Any:  # fmt: skip
    """The image with a border: `value`, or `values` (type 0), or OpenCV's other types.

    `values` are those of the first channels, the other ones have 0.
    """
    check_kind("copyMakeBorder", "src", src, nd.NDArray, "an image, an NDArray")
    image = src.asnumpy()
    cv2 = opencv("copyMakeBorder")
    colour = np.atleast_1d(values).tolist() or [float(value)] * 4
    done = cv2.copyMakeBorder(image, top, bot, left, right, type, value=colour)
    return _result(done[:, :, None] if done.ndim == 2 else done, out)


def scale_down(src_size: Sizes, size: Sizes) -> Sizes:
    """`size` (width, height), made smaller in its proportions until it fits into `src_size`.

    >>> scale_down((640, 480), (720, 120))
    (640, 106)
    """
    check_sizes("scale_down", "src_size", src_size, 2)
    check_sizes("scale_down", "size", size, 2)
    w, h = size
    sw, sh = src_size
    if sh < h:
        w, h = w * sh / h, sh
    if sw < w:
        w, h = sw, h * sw / w
    return int(w), int(h)


def resize_short(src: Any, size: int, interp: int = 2) -> Any:
    """The image with a shorter edge of `size`."""
    check_sizes("resize_short", "size", size, 1)
    h, w = values("resize_short", src).shape[:2]
    new = (size, size * h // w) if h > w else (size * w // h, size)
    return imresize(src, *new, interp=interp)


@checked
def fixed_crop(
    src: Any, x0: int, y0: int, w: int, h: int, size: Sizes | None = None, interp: int = 2
) -> Any:
    """The part of an image that begins at (x0, y0), in `size` (width, height) where given.

    A part that reaches beyond the right or the lower edge ends there.

    Raises:
        ParamError: it begins outside of the image, or holds nothing.
    """
    image = values("fixed_crop", src)
    part = image[max(y0, 0) : y0 + h, max(x0, 0) : x0 + w]
    if min(x0, y0) < 0 or min(w, h) < 1 or not part.size:
        expected = f"a part of an image of shape {image.shape}"
        raise ParamError(complaint("fixed_crop", "x0, y0, w, h", expected, (x0, y0, w, h)))
    if size is not None and (w, h) != tuple(size):
        check_sizes("fixed_crop", "size", size, 2)
        part = _resized("fixed_crop", np.ascontiguousarray(part), *size, interp)
    return _result(part)


Place = tuple[int, int, int, int]


def random_crop(src: Any, size: Sizes, interp: int = 2) -> tuple[Any, Place]:
    """A part at random, in `size` (width, height), and its place (x0, y0, w, h)."""
    check_sizes("random_crop", "size", size, 2)
    h, w = values("random_crop", src).shape[:2]
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = random.randint(0, w - new_w), random.randint(0, h - new_h)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def center_crop(src: Any, size: Sizes, interp: int = 2) -> tuple[Any, Place]:
    """The middle of an image, in `size` (width, height), and its place (x0, y0, w, h)."""
    check_sizes("center_crop", "size", size, 2)
    h, w = values("center_crop", src).shape[:2]
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = (w - new_w) // 2, (h - new_h) // 2
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def random_size_crop(
    src: Any, size: Sizes, area: Any, ratio: tuple[float, float], interp: int = 2, **kwargs: Any
) -> tuple[Any, Place]:
    """A part of random area (a least share, or a range) and proportion, in `size`, and its place.

    The middle of the image where ten trials do not fit.
    """
    h, w = values("random_size_crop", src).shape[:2]
    area = kwargs.pop("min_area", area)
    low, high = (area, 1.0) if isinstance(area, Real) else area
    for _ in range(10):
        target = random.uniform(low, high) * h * w
        proportion = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        new_w, new_h = round(math.sqrt(target * proportion)), round(math.sqrt(target / proportion))
        if 0 < new_w <= w and 0 < new_h <= h:
            x0, y0 = random.randint(0, w - new_w), random.randint(0, h - new_h)
            return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)
    return center_crop(src, size, interp)


def color_normalize(src: Any, mean: Any, std: Any = None) -> Any:
    """`(src - mean) / std`, each of them a number or one for each channel; None leaves it out."""
    check_kind("color_normalize", "src", src, (nd.NDArray, np.ndarray), "an image, an NDArray")
    if mean is not None:
        src = src - mean
    return src if std is None else src / std
