"""Rotation of images and batches of them about their centre."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import DTypeError, ParamError, ShapeError, check_kind, complaint


def imrotate(src: Any, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> Any:
    """float32 images (channels, height, width), or a batch of them, rotated counterclockwise.

    What lies outside of an image counts as 0. `zoom_in` enlarges images until nothing of that is
    seen, `zoom_out` makes them smaller until nothing of them is cut off. A batch may be rotated by
    an NDArray of angles, one for each image.

    >>> imrotate(nd.array([[[1, 2], [3, 4]]]), 90).asnumpy().tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]

    Raises:
        DTypeError: images of another type than float32; for one image, an angle that is no number.
        ShapeError: `src` has other axes, or another number of images than angles.
        ParamError: both `zoom_in` and `zoom_out`.
    """
    check_kind("imrotate", "src", src, nd.NDArray, "images, an NDArray")
    if zoom_in and zoom_out:
        raise ParamError(complaint("imrotate", "zoom_out", "False beside zoom_in", True))
    if src.dtype != np.float32:
        got = np.dtype(src.dtype).name
        raise DTypeError(complaint("imrotate", "src", "images of float32", got))
    if src.ndim not in (3, 4):
        expected = "(channels, height, width), or a batch of images"
        raise ShapeError(complaint("imrotate", "src", expected, f"shape {src.shape}"))
    if src.ndim == 3:
        if not np.isscalar(rotation_degrees) or isinstance(rotation_degrees, str):
            raise DTypeError(complaint("imrotate", "rotation_degrees", "a number for one image",
                                       type(rotation_degrees).__name__))  # fmt: skip
        return imrotate(src.expand_dims(0), rotation_degrees, zoom_in, zoom_out)[0]
    given = rotation_degrees
    angles = np.atleast_1d(given.asnumpy() if isinstance(given, nd.NDArray) else given)
    angles = np.radians(angles.astype(np.float64))
    if angles.shape not in ((1,), (len(src),)):
        expected = f"{len(src)} angles, one for each image"
        raise ShapeError(complaint("imrotate", "rotation_degrees", expected, angles.shape))
    grid = _grid(np.broadcast_to(angles, (len(src),)), src.shape[2:], zoom_in, zoom_out)
    return nd.BilinearSampler(src, nd.array(grid, ctx=src.context, dtype="float32"))


def _grid(angles: Any, size: tuple[int, int], zoom_in: bool, zoom_out: bool) -> Any:
    """Where each element of the rotated images is read, x and y from -1 to 1."""
    height, width = size
    turn = angles.reshape(-1, 1, 1)
    cos, sin = np.cos(turn), np.sin(turn)
    if zoom_in or zoom_out:
        longer = max(height / width, width / height)
        scale = np.abs(cos) + np.abs(sin) * longer
        cos, sin = (cos * scale, sin * scale) if zoom_out else (cos / scale, sin / scale)
    half_h, half_w = (height - 1) / 2, (width - 1) / 2
    y, x = np.mgrid[:height, :width]
    dx, dy = x - half_w, y - half_h
    return np.stack(
        [(cos * dx - sin * dy) / (half_w or 1), (sin * dx + cos * dy) / (half_h or 1)], axis=1
    )


def random_rotate(
    src: Any, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False
) -> Any:
    """`imrotate` by angles between two limits, drawn by NumPy: one for each image.

    Raises:
        DTypeError, ShapeError, ParamError: as `imrotate`.
    """
    check_kind("random_rotate", "src", src, nd.NDArray, "images, an NDArray")
    numbers = isinstance(angle_limits, (tuple, list)) and len(angle_limits) == 2
    if not numbers or not all(isinstance(limit, Real) for limit in angle_limits):
        expected = "two numbers"
        raise ParamError(complaint("random_rotate", "angle_limits", expected, angle_limits))
    if src.ndim == 3:
        return imrotate(src, np.random.uniform(*angle_limits), zoom_in, zoom_out)
    angles = np.random.uniform(*angle_limits, size=len(src))
    return imrotate(src, nd.array(angles), zoom_in, zoom_out)
