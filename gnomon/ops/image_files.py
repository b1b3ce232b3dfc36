"""MXNet's operators for images by OpenCV: decoding, reading, resizing, borders."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.base import FormatError, GnomonError, ParamError, complaint
from gnomon.dtype import float32, uint8
from gnomon.ground.files import read_bytes
from gnomon.ground.lock import load_module
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import UNKNOWN, Shapes, Types, fixed_dtypes
from gnomon.ops.op import op
from gnomon.ops.param import Floats, param

# a white image of 2 x 1, as a portable pixmap
_PIXELS = np.frombuffer(b"P6 2 1 255 " + b"\xff" * 6, np.uint8)
CHANNELS = {0: 1, 1: 3}  # of the images that a flag asks for; others as they are stored
PNG = b"\x89PNG\r\n\x1a\n"
SIDE = 1 << 20  # pixels: more along one side of an image are a mistake


def opencv(where: str) -> Any:
    """OpenCV, which only images need.

    Raises:
        GnomonError: it is not installed.
    """
    try:
        return load_module("cv2")
    except ImportError as error:
        raise GnomonError(f"{where}: needs OpenCV: install gnomon[image]") from error


def decoded(where: str, data: bytes, channels: int, rgb: bool) -> Array:
    """The image in `data` as uint8 (height, width, channels); 1 channel is grey, 4 as stored.

    Raises:
        FormatError: `data` is no image.
        GnomonError: OpenCV is not installed.
    """
    cv2 = opencv(where)
    if data.startswith(PNG) and (claim := _largest_claim(data)) > len(data):
        expected = f"an image, whose parts are in its {len(data)} bytes"
        raise FormatError(f"{where}: expected {expected}, got a PNG with a part of {claim}")
    flag = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR}.get(channels, cv2.IMREAD_UNCHANGED)
    found = cv2.imdecode(np.frombuffer(data, np.uint8), flag) if data else None
    if found is None:
        raise FormatError(f"{where}: expected an image, got {len(data)} bytes {data[:8]!r}...")
    found = found[:, :, None] if found.ndim == 2 else found
    if rgb and found.shape[2] >= 3:
        swap = cv2.COLOR_BGR2RGB if found.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
        found = cv2.cvtColor(found, swap)
    return np.asarray(found)


def _largest_claim(data: bytes) -> int:
    """The greatest length that a PNG gives for a chunk. OpenCV takes that much memory."""
    at, most = len(PNG), 0
    while at + 8 <= len(data) and data[at + 4 : at + 8] != b"IEND":
        length = int.from_bytes(data[at : at + 4], "big")
        at, most = at + 12 + length, max(most, length)
    return most


class Decoding(HostOp):
    """What reading and decoding share."""

    flag: int = param(1, low=-1, high=1, doc="0: grey, 1: three channels, -1: as it is stored.")
    to_rgb: bool = param(True, doc="Channels in the order red, green, blue; else the reverse.")
    types = fixed_dtypes(output=uint8)

    def shapes(self, s: Shapes) -> None:
        s["output"] = (UNKNOWN, UNKNOWN, CHANNELS.get(self.flag, UNKNOWN))

    def image(self, data: bytes) -> Array:
        """The image in compressed bytes."""
        return decoded(self.name, data, CHANNELS.get(self.flag, 4), self.to_rgb)


@op("_cvimdecode", inputs=("buf",), aliases=("_npi_cvimdecode",))
class CvDecode(Decoding):
    """The image in the compressed bytes `buf` (n,), uint8 (height, width, channels)."""

    types = fixed_dtypes(buf=uint8, output=uint8)

    def compute(self, buf: Array) -> Array:
        return self.image(buf.tobytes())


@op("_cvimread", inputs=(), aliases=("_npi_cvimread",))
class CvRead(Decoding):
    """The image in a file, uint8 (height, width, channels)."""

    filename: str = param(doc="The file.")
    leading = ("filename",)

    def compute(self) -> Array:
        return self.image(read_bytes(self.name, self.filename))


@op("_imdecode", inputs=("buf",))
class Decode(HostOp):
    """The image in the compressed bytes `buf` (n,), cut, as float32 (channels, height, width)."""

    index: int = param(0, low=0, doc="The place in a batch that `mx.nd.imdecode` writes to.")
    x0: int = param(0, low=0, doc="First column.")
    y0: int = param(0, low=0, doc="First row.")
    x1: int = param(0, low=0, doc="The column behind the last; 0 for all.")
    y1: int = param(0, low=0, doc="The row behind the last; 0 for all.")
    c: int = param(3, low=1, doc="Channels: 1 is grey, 3 red, green and blue.")
    size: int = param(0, low=0, doc="How many bytes there are; 0 for all.")
    gradient = HostOp.without_gradient

    def shapes(self, s: Shapes) -> None:
        (count,) = s.rank("buf", 1)
        if 0 <= count < self.size:
            raise s.refuse("buf", f"at least size={self.size} bytes", count)
        cut = self.x1 > 0 and self.y1 > 0
        sides = (self.y1 - self.y0, self.x1 - self.x0) if cut else (UNKNOWN, UNKNOWN)
        s["output"] = (self.c, *sides)

    def check(self) -> None:
        if self.c not in (1, 3):
            raise self.wrong("c", "1 or 3 channels")
        if bool(self.x1) != bool(self.y1) or (
            self.x1 and (self.x0 >= self.x1 or self.y0 >= self.y1)
        ):
            expected = "x0 < x1 and y0 < y1, or x1 = y1 = 0"
            got = (self.x0, self.y0, self.x1, self.y1)
            raise ParamError(complaint(self.name, "clip_rect", expected, got))

    def types(self, t: Types) -> None:
        t["buf"], t["output"] = uint8, float32

    def compute(self, buf: Array) -> Array:
        data = buf[: self.size or len(buf)].tobytes()
        image = decoded(self.name, data, self.c, rgb=True)
        rows, columns = image.shape[:2]
        if self.x1 > columns or self.y1 > rows:
            expected = f"a part of an image of {columns} x {rows}"
            got = (self.x0, self.y0, self.x1, self.y1)
            raise ParamError(complaint(self.name, "clip_rect", expected, got))
        part = image[self.y0 : self.y1 or rows, self.x0 : self.x1 or columns]
        return part.transpose(2, 0, 1).astype(np.float32)

    cases = (case(_PIXELS), case(_PIXELS, x1=1, y1=1, c=1))

    def reference(self, buf: Array) -> Array:
        return np.full((self.c, *((1, 1) if self.x1 else (1, 2))), 255.0, np.float32)


class Picture(HostOp):
    """What operators on images (height, width, channels) share."""

    def channels(self, s: Shapes) -> int:
        """Channels of `src`."""
        return s.rank("src", 3)[2]


@op("_cvimresize", inputs=("src",), aliases=("_npi_cvimresize",))
class CvResize(Picture):
    """An image in another size, its dtype kept."""

    w: int = param(low=1, high=SIDE, doc="Columns of the result.")
    h: int = param(low=1, high=SIDE, doc="Rows of the result.")
    interp: int = param(1, low=0, high=4, doc="OpenCV's interpolation: 0 nearest, 1 linear...")

    def shapes(self, s: Shapes) -> None:
        s["output"] = (self.h, self.w, self.channels(s))

    def compute(self, src: Array) -> Array:
        made = opencv(self.name).resize(
            np.ascontiguousarray(src), (self.w, self.h), interpolation=self.interp
        )
        return np.reshape(made, (self.h, self.w, src.shape[2]))


@op("_cvcopyMakeBorder", inputs=("src",))
class CvBorder(Picture):
    """An image with a border around it."""

    top: int = param(low=0, high=SIDE, doc="Rows above.")
    bot: int = param(low=0, high=SIDE, doc="Rows below.")
    left: int = param(low=0, high=SIDE, doc="Columns before.")
    right: int = param(low=0, high=SIDE, doc="Columns behind.")
    type: int = param(0, low=0, high=4, doc="OpenCV's kind of border; 0: numbers.")
    value: float = param(0.0, doc="The number of a border of numbers.")
    values: Floats = param((), lengths=range(5), doc="Numbers for each channel, in its place.")
    cases = (
        case((2, 3, 1), top=1, bot=0, left=2, right=1, value=3, differentiable=()),
        case((2, 2, 3), top=0, bot=2, left=0, right=1, values=(1, 2, 3), differentiable=()),
    )

    def shapes(self, s: Shapes) -> None:
        channels = self.channels(s)
        h, w, _ = s.need("src")
        s["output"] = (h + self.top + self.bot, w + self.left + self.right, channels)

    def compute(self, src: Array) -> Array:
        around = (self.top, self.bot, self.left, self.right)
        colour = self.values or (self.value,) * 4
        image = np.ascontiguousarray(src)
        made = opencv(self.name).copyMakeBorder(image, *around, self.type, value=colour)
        h, w, channels = src.shape
        return np.reshape(made, (h + around[0] + around[1], w + around[2] + around[3], channels))

    def reference(self, src: Array) -> Array:
        around = ((self.top, self.bot), (self.left, self.right))
        colour = self.values or (self.value,) * src.shape[2]
        parts = [
            np.pad(src[..., k], around, constant_values=colour[k]) for k in range(src.shape[2])
        ]
        return np.stack(parts, -1)
