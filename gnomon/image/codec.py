"""Images from compressed bytes: by libjpeg-turbo where it can, by OpenCV otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.lock import load_module
from gnomon.ops.image_files import decoded

Image = np.ndarray[Any, Any]
JPEG = b"\xff\xd8\xff"


def _jpeg() -> Any:
    try:
        return load_module("simplejpeg")
    except ImportError:
        return None


def decode(where: str, data: bytes, channels: int = 3, *, rgb: bool = True) -> Image:
    """The image in `data` as uint8 (height, width, channels); 1 channel is grey, 4 as stored.

    Raises:
        FormatError: `data` is no image.
        GnomonError: neither library is installed.
    """
    jpeg = _jpeg() if data[:3] == JPEG and channels in (1, 3) else None
    if jpeg is not None:
        space = "Gray" if channels == 1 else "RGB" if rgb else "BGR"
        try:
            return jpeg.decode_jpeg(data, colorspace=space, fastdct=False, fastupsample=False)
        except ValueError:
            pass  # CMYK, or broken: OpenCV reads more
    return decoded(where, data, channels, rgb)
