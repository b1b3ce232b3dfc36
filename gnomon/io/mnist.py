"""Pictures and labels in the files of MNIST."""

from __future__ import annotations

import logging
import struct
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import FormatError
from gnomon.io.rows import RowIter, Rows, dense
from gnomon.io.source import Part, read
from gnomon.ops.param import param


class MNISTIter(Part, RowIter):
    """Batches from a pair of files in MNIST's format, also packed (.gz); values from 0 to 255/256.

    Rows are shuffled once, by `seed`; those that do not fill a batch are left out.

    Raises:
        FormatError: a file has another format, or there are more pictures than labels.
    """

    image: str = param("./train-images-idx3-ubyte", doc="The file of pictures.")
    label: str = param("./train-labels-idx1-ubyte", doc="The file of labels.")
    batch_size: int = param(128, low=1, doc="Rows in a batch.")
    shuffle: bool = param(True, doc="Take the rows in another order.")
    flat: bool = param(False, doc="Give pictures of one axis.")
    seed: int = param(0, doc="What the order is drawn by.")
    silent: bool = param(False, doc="Do not log how many rows there are.")
    round_batch = False  # no option: the last rows are left out
    _drops_last = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        pictures, labels = read_idx(self.image), read_idx(self.label)
        if pictures.ndim != 3 or labels.ndim != 1 or len(pictures) != len(labels):
            expected = "pictures (n, height, width) and n labels"
            got = f"shapes {pictures.shape} in {self.image!r} and {labels.shape} in {self.label!r}"
            raise FormatError(f"MNISTIter: expected {expected}, got {got}")
        self._order = np.arange(len(labels))
        if self.shuffle:
            np.random.default_rng(self.seed).shuffle(self._order)
        part = self.part(len(labels))
        self._order = self._order[part.start : part.stop]
        self._pictures, self._labels = pictures, labels
        self._kind = dtypes.of(self.dtype or "float32").numpy
        self._begin(len(self._order))
        if not self.silent:
            shape = (self.batch_size, *self._data(self._numbers(0)).shape[1:])
            logging.info("MNISTIter: load %d images, shuffle=%d, shape=%s", len(self._order),
                         self.shuffle, shape)  # fmt: skip

    def _data(self, rows: Rows) -> Any:
        chosen = self._pictures[self._order[rows]]
        shape = (len(rows), -1) if self.flat else (len(rows), 1, *chosen.shape[1:])
        return dense((chosen.reshape(shape) * np.float32(1 / 256)).astype(self._kind))

    def _label(self, rows: Rows) -> Any:
        return dense(self._labels[self._order[rows]].astype(np.float32))


def read_idx(path: str) -> np.ndarray[Any, Any]:
    """The array of bytes in a file of the IDX format.

    Raises:
        FormatError: it is none, or has more or fewer bytes than it says.
    """
    content = read("MNISTIter", path)
    axes = content[3] if len(content) > 3 else 0
    start = 4 + 4 * axes
    if content[:3] != b"\0\0\x08" or len(content) < start:
        raise FormatError(f"{path}: expected the IDX format of bytes, got {content[:4]!r}")
    shape = struct.unpack_from(f">{axes}I", content, 4)
    values = np.frombuffer(content, np.uint8, offset=start)
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise FormatError(f"{path}: expected {shape} bytes, got {values.size}")
    return values.reshape(shape)
