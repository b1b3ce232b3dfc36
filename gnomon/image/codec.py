"""Images from compressed bytes: by libjpeg-turbo where it can, by OpenCV otherwise."""

from __future__ import annotations

import threading
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


class Canvas(threading.local):
    """Memory of a thread that its images are decoded into, one after the other.

    An image in memory of its own costs a quarter more: its pages are new ones every time.
    """

    memory: Image = np.empty(0, np.uint8)

    def of(self, nbytes: int) -> Image:
        """At least so many bytes, the same ones as before."""
        if self.memory.size < nbytes:
            self.memory = np.empty(nbytes, np.uint8)
        return self.memory


def decode(
    where: str, data: bytes, channels: int = 3, *, rgb: bool = True, canvas: Canvas | None = None
) -> Image:
    """The image in `data` as uint8 (height, width, channels); 1 channel is grey, 4 as stored.

    On a `canvas` it stays until the next image of this thread is decoded on it.

    Raises:
        FormatError: `data` is no image.
        GnomonError: neither library is installed.
    """
    jpeg = _jpeg() if data[:3] == JPEG and channels in (1, 3) else None
    if jpeg is not None:
        space = "Gray" if channels == 1 else "RGB" if rgb else "BGR"
        try:
            memory = None
            if canvas is not None:
                height, width, *_ = jpeg.decode_jpeg_header(data)
                memory = canvas.of(height * width * channels)
            return jpeg.decode_jpeg(
                data, colorspace=space, fastdct=False, fastupsample=False, buffer=memory
            )
        except (ValueError, MemoryError):
            pass  # CMYK, or broken: OpenCV reads more, and has a limit
    return decoded(where, data, channels, rgb)
