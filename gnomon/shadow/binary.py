"""save_binary, load_binary: tensors as mshadow lays them out in a stream.

First the sizes, an unsigned word of 32 bits each, then the rows without padding, both in the
byte order of little-endian machines. Rank and dtype are not written: the reader must know them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import IO, Any, TypeVar

import numpy as np

from gnomon.base import FormatError, ShapeError, complaint
from gnomon.expr.arguments import explained
from gnomon.shadow.container import TensorContainer
from gnomon.shadow.tensor import Tensor
from gnomon.shape import prod

LARGEST = 2**32 - 1
PIECE = 1 << 24  # bytes asked of a stream at once: a foreign file's sizes claim no memory
T = TypeVar("T", bound=Tensor)


@explained
def save_binary(stream: IO[bytes], tensor: Tensor) -> None:
    """Write the shape and the rows of `tensor`.

    >>> import io
    >>> stream = io.BytesIO()
    >>> save_binary(stream, TensorContainer((2, 3), init=1.0))
    >>> stream.getvalue()[:12]
    b'\\x02\\x00\\x00\\x00\\x03\\x00\\x00\\x00\\x00\\x00\\x80?'

    Raises:
        ShapeError: a size that 32 bits do not hold; nothing is written.
    """
    array = tensor.numpy()
    if any(n > LARGEST for n in array.shape):
        expected = f"sizes of at most {LARGEST}"
        raise ShapeError(complaint("save_binary", "tensor", expected, array.shape))
    rows = np.ascontiguousarray(array)
    if rows.dtype.byteorder == ">":
        rows = rows.byteswap()
    write = method(stream, "save_binary", "write")
    write(struct.pack(f"<{array.ndim}I", *array.shape))
    write(rows.tobytes())


@explained
def load_binary(stream: IO[bytes], dest: T, pre_alloc: bool = False) -> T:
    """Read what `save_binary` wrote of a tensor of the rank and dtype of `dest`; gives `dest`.

    A TensorContainer takes the shape that is read, unless `pre_alloc`; any other tensor must have
    that shape already.

    >>> import io
    >>> stream = io.BytesIO()
    >>> save_binary(stream, TensorContainer((2, 3), init=1.5))
    >>> _ = stream.seek(0)
    >>> load_binary(stream, TensorContainer((0, 0))).shape
    (2, 3)

    Raises:
        FormatError: the stream ends before the rows do; `dest` is untouched.
        ShapeError: another shape than that of a `dest` which cannot change; it is untouched.
    """
    shape = struct.unpack(f"<{dest.ndim}I", exactly(stream, 4 * dest.ndim, "sizes"))
    free = isinstance(dest, TensorContainer) and not pre_alloc
    if not free and shape != dest.shape:
        raise ShapeError(complaint("load_binary", "dest", f"shape {shape} as stored", dest.shape))
    words = exactly(stream, prod(shape) * dest.dtype.size, f"rows of shape {shape}")
    rows = np.frombuffer(bytearray(words), dest.dtype.numpy).reshape(shape)
    if free and isinstance(dest, TensorContainer):
        dest.resize(shape)
    dest.assign(Tensor(rows))
    return dest


def method(stream: IO[bytes], where: str, name: str) -> Callable[..., Any]:
    """A method of a stream; a TypeError where it has none."""
    found: Callable[..., Any] | None = getattr(stream, name, None)
    if not callable(found):
        expected = f"a binary stream to {name}"
        raise TypeError(complaint(where, "stream", expected, f"a {type(stream).__name__}"))
    return found


def exactly(stream: IO[bytes], count: int, what: str) -> bytes:
    """The next `count` bytes; a FormatError that says what they were to hold."""
    pieces, got = [], 0
    while got < count:
        piece = method(stream, "load_binary", "read")(min(PIECE, count - got))
        if not piece:
            message = complaint("load_binary", "stream", f"{count} bytes: {what}", f"{got} bytes")
            raise FormatError(f"{message}; it is truncated, or no tensor of this rank and dtype")
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces)
