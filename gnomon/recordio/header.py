"""What an image record holds: a header with label and identity before the encoded image."""

from __future__ import annotations

import numbers
import struct
from typing import Any, NamedTuple

import numpy as np

from gnomon.base import FormatError, GnomonError, ParamError, check_kind, complaint, shown
from gnomon.ground.arguments import checked
from gnomon.ground.lock import load_module


class IRHeader(NamedTuple):
    """What stands before an image in a record: label and identity.

    `flag` is 0 for one float label, else the number of floats in `label`; `pack` sets it.
    """

    flag: int
    label: Any
    id: int
    id2: int

    def __repr__(self) -> str:
        """As MXNet shows it."""
        shown = f"label={self.label!r}, id={self.id!r}, id2={self.id2!r}"
        return f"HEADER(flag={self.flag!r}, {shown})"


_HEADER = struct.Struct("<IfQQ")


def pack(header: IRHeader | tuple[Any, ...], s: bytes) -> bytes:
    """A record's bytes: `header` before the content `s`.

    The header's label is a number, or a float array of any length, whose size becomes the flag.

    >>> unpack(pack(IRHeader(0, [1, 2], 7, 0), b"picture"))
    (HEADER(flag=2, label=array([1., 2.], dtype=float32), id=7, id2=0), b'picture')

    Raises:
        ParamError: a field does not fit its place.
    """
    check_kind("pack", "s", s, (bytes, bytearray, memoryview), "bytes")
    if not isinstance(header, (tuple, list)) or len(header) != len(IRHeader._fields):
        expected = "an IRHeader: flag, label, id, id2"
        raise ParamError(complaint("pack", "header", expected, shown(header)))
    header = IRHeader(*header)
    labels = b""
    if isinstance(header.label, numbers.Number):
        header = header._replace(flag=0)
    else:
        label = np.asarray(header.label, np.float32)
        header, labels = header._replace(flag=label.size, label=0), label.tobytes()
    try:
        return _HEADER.pack(*header) + labels + s
    except (struct.error, OverflowError) as e:
        raise ParamError(complaint("pack", "header", "32-bit flag, 64-bit ids", header)) from e


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """The header and the content of a record's bytes that `pack` made.

    Raises:
        FormatError: the bytes are too short for a header, or for the labels it speaks of.
    """
    check_kind("unpack", "s", s, (bytes, bytearray, memoryview), "the bytes of a record")
    if len(s) < _HEADER.size:
        raise FormatError(f"unpack: expected at least {_HEADER.size} bytes of header, got {len(s)}")
    header, rest = IRHeader(*_HEADER.unpack_from(s)), s[_HEADER.size :]
    if header.flag == 0:
        return header, rest
    size = 4 * header.flag
    if len(rest) < size:
        raise FormatError(f"unpack: expected {header.flag} labels, got {len(rest)} bytes")
    label = np.frombuffer(rest[:size], "<f4").astype(np.float32)
    return header._replace(label=label), rest[size:]


@checked
def pack_img(
    header: IRHeader | tuple[Any, ...], img: Any, quality: int = 95, img_fmt: str = ".jpg"
) -> bytes:
    """A record's bytes: `header` before `img`, encoded.

    Args:
        img: uint8 array, (height, width) grey or (height, width, 3) in the order blue, green, red.
        quality: 1 to 100 for JPEG, the compression 0 to 9 for PNG; what is above counts as 9.
        img_fmt: ".jpg" or ".png".

    Raises:
        ParamError: the format is unknown, or OpenCV cannot encode the array.
        GnomonError: OpenCV is not installed.
    """
    cv2 = opencv("pack_img")
    settings = {
        ".jpg": cv2.IMWRITE_JPEG_QUALITY,
        ".jpeg": cv2.IMWRITE_JPEG_QUALITY,
        ".png": cv2.IMWRITE_PNG_COMPRESSION,
    }
    if img_fmt.lower() not in settings:
        raise ParamError(complaint("pack_img", "img_fmt", f"one of {[*settings]}", repr(img_fmt)))
    img = np.asarray(img)
    try:
        setting = settings[img_fmt.lower()]
        limit = 9 if setting == cv2.IMWRITE_PNG_COMPRESSION else 100  # beyond it OpenCV warns
        done, data = cv2.imencode(img_fmt, img, [setting, min(quality, limit)])
    except cv2.error as e:
        raise ParamError(complaint("pack_img", "img", "a uint8 image", _about(img))) from e
    if not done:
        raise ParamError(complaint("pack_img", "img", "an image to encode", _about(img)))
    return pack(header, data.tobytes())


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, np.ndarray[Any, Any]]:
    """The header and the decoded image of a record's bytes.

    The image is uint8, (height, width, 3) in the order blue, green, red, or (height, width) grey.
    `iscolor` is 1 for colour, 0 for grey, -1 for what the file has.

    Raises:
        FormatError: the header is cut, or what follows is no image.
        GnomonError: OpenCV is not installed.
    """
    cv2 = opencv("unpack_img")
    header, data = unpack(s)
    img = cv2.imdecode(np.frombuffer(data, np.uint8), iscolor) if data else None
    if img is None:
        raise FormatError(f"unpack_img: expected an image, got {len(data)} bytes {data[:8]!r}...")
    return header, img


def opencv(where: str) -> Any:
    """The module cv2; GnomonError, which names what needs it, where it is not installed."""
    try:
        return load_module("cv2")
    except ImportError as e:
        raise GnomonError(f"{where} needs OpenCV: pip install 'gnomon[image]'") from e


def _about(img: np.ndarray[Any, Any]) -> str:
    return f"{img.dtype} of shape {img.shape}"
