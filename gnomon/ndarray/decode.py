"""`imdecode`: the first function for images, which subtracts a mean and fills batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.ndarray.create import array
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ops import registry


def imdecode(
    str_img: bytes,
    clip_rect: Sequence[int] = (0, 0, 0, 0),
    out: Any = None,
    index: int = 0,
    channels: int = 3,
    mean: Any = None,
) -> Any:
    """The image in compressed bytes, as float32 (channels, height, width); red comes first.

    Args:
        str_img: the bytes of a file.
        clip_rect: the part (x0, y0, x1, y1) to keep, ends excluded; all zeros keep everything.
        out: an array of the image's shape, or a batch of such, that is written to.
        index: the place in that batch.
        channels: 1 for grey, or 3.
        mean: an array of the image's shape that is subtracted.

    Raises:
        FormatError: the bytes are no image.
        ParamError: the part is not within the image.
        ShapeError: `out` or `mean` has another shape.
        IndexError: the batch has no such place.
    """
    x0, y0, x1, y1 = clip_rect
    given = {"index": index, "x0": x0, "y0": y0, "x1": x1, "y1": y1, "c": channels}
    op = registry.find("_imdecode").parse({**given, "size": len(str_img)})
    image = invoke(op, (array(np.frombuffer(str_img, np.uint8), dtype="uint8"),))
    if mean is not None:
        if mean.shape != image.shape:
            raise ShapeError(complaint("imdecode", "mean", f"shape {image.shape}", mean.shape))
        image = image - mean
    if out is None:
        return image
    dest = out[index] if out.ndim == 4 else out
    if dest.shape != image.shape:
        raise ShapeError(complaint("imdecode", "out", f"shape {image.shape}", out.shape))
    dest[:] = image
    return out
