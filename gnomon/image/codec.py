"""Images from compressed bytes: by libjpeg-turbo where it can, by OpenCV otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.ground.lock import load_module
from gnomon.ops.image_files import decoded

Image = np.ndarray[Any, Any]
JPEG = b"\xff\xd8\xff"


def _jpeg() -> Any:
    try:
        return load_module("simplejpeg")
    except ImportError:
        return None


def decode(where: str, data: bytes, channels: int = 3, *, rgb: bool = True, edge: int = 0) -> Image:
    """The image in `data` as uint8 (height, width, channels); 1 channel is grey, 4 as stored.

    With `edge` a JPEG may come at a half, a quarter or an eighth of its size, of which no side is
    shorter than that: its frequencies above are not computed.

    Raises:
        FormatError: `data` is no image.
        GnomonError: neither library is installed.
    """
    jpeg = _jpeg() if data[:3] == JPEG and channels in (1, 3) else None
    if jpeg is not None:
        space = "Gray" if channels == 1 else "RGB" if rgb else "BGR"
        try:
            least = _scaled(jpeg, data, edge) if edge else {}
            return jpeg.decode_jpeg(
                data, colorspace=space, fastdct=False, fastupsample=False, **least
            )
        except ValueError:
            pass  # CMYK, or broken: OpenCV reads more
    return decoded(where, data, channels, rgb)


def _scaled(jpeg: Any, data: bytes, edge: int) -> dict[str, int]:
    """The size to decode at so that no side is shorter than `edge`: a power of 2 is fastest."""
    height, width, *_ = jpeg.decode_jpeg_header(data)
    share = next((n for n in (8, 4, 2) if min(height, width) >= n * edge), 1)
    return {"min_height": height // share, "min_width": width // share}
