"""Images moved as OpenCV 4 does, whichever OpenCV there is: places count in 1/32 of a pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

_BITS, _FINE = 10, 5  # of a place's fraction while it is computed, and where it is read


def warp_affine(
    cv2: Any,
    image: Any,
    matrix: np.ndarray[Any, Any],
    size: tuple[int, int],
    way: int,
    filling: Any,
) -> Any:
    """`image` moved by a (2, 3) matrix into `size` (width, height); `filling` is around it,
    `way` how OpenCV is to interpolate."""
    (a, b, right), (c, d, down) = matrix
    one = a * d - b * c
    one = 1 / one if one else 0.0
    a, b, c, d = d * one, -b * one, -c * one, a * one
    width, height = size
    columns, rows = np.arange(width)[None], np.arange(height)[:, None]
    nearest = way == cv2.INTER_NEAREST
    half = 1 << (_BITS - (1 if nearest else _FINE + 1))
    x = _whole(b * rows - a * right - b * down) + half + _whole(a * columns)
    y = _whole(d * rows - c * right - d * down) + half + _whole(c * columns)
    places = np.empty((height, width, 2), np.int16)
    around = {"borderMode": cv2.BORDER_CONSTANT, "borderValue": filling}
    for k, place in enumerate((x, y)):
        np.right_shift(place, _BITS, out=places[..., k], casting="unsafe")
    if nearest:
        return cv2.remap(image, places, None, way, **around)
    for place in (x, y):
        place >>= _BITS - _FINE
        place &= (1 << _FINE) - 1
    y <<= _FINE
    parts = np.empty((height, width), np.uint16)
    np.bitwise_or(x, y, out=parts, casting="unsafe")
    return cv2.remap(image, places, parts, way, **around)


def _whole(places: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.rint(places * (1 << _BITS)).astype(np.int32)
