"""`ImageIter`: batches of images from records, from lists or from files, changed by augmenters.

State: `_order` is the order of the samples in this epoch, `cur` the next one; with `roll_over`
`_carried` holds the arrays that the epoch before did not fill, and how far it came.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon import recordio
from gnomon.base import FormatError, ParamError, ShapeError, complaint, shown
from gnomon.ground.files import naming
from gnomon.image.augmenters import Augmenter, CreateAugmenter
from gnomon.image.functions import imdecode
from gnomon.io.desc import DataBatch, DataDesc
from gnomon.io.iterator import DataIter
from gnomon.io.source import read
from gnomon.recordio.listing import rows as rows_of
from gnomon.recordio.source import Records

HANDLES = ("pad", "discard", "roll_over")


class ImageIter(DataIter):
    """Batches (n, channels, height, width) of images, in float32 unless `dtype` says otherwise.

    Images are those of a record file (`path_imgrec`), or files below `path_root` that a list
    names: `path_imglist`, lines `number<TAB>labels<TAB>path`, or `imglist`, rows `[label, path]`.
    With both a record file and a list, the list's labels count. What else is given goes to
    `CreateAugmenter`, unless `aug_list` says what is done.

    Raises:
        ParamError: there is no source of images; an option that is not allowed.
        FormatError: a list or an image that is broken.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        label_width: int = 1,
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[Augmenter] | None = None,
        imglist: Sequence[Sequence[Any]] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size)
        self.check_data_shape(data_shape)
        if last_batch_handle not in HANDLES:
            expected = f"one of {HANDLES}"
            raise ParamError(
                complaint("ImageIter", "last_batch_handle", expected, last_batch_handle)
            )
        if not 0 <= part_index < num_parts:
            expected = f"below num_parts={num_parts}"
            raise ParamError(complaint("ImageIter", "part_index", expected, part_index))
        self.data_shape, self.label_width = tuple(data_shape), label_width
        self.path_root, self.shuffle, self.dtype = path_root, shuffle, dtype
        self.last_batch_handle = last_batch_handle
        self.auglist = self._usual(**kwargs) if aug_list is None else list(aug_list)
        self.imgrec = Records(type(self).__name__, path_imgrec) if path_imgrec else None
        self.imglist = self._listed(path_imglist, imglist)
        if self.imgrec is None and self.imglist is None:
            expected = "one of path_imgrec, path_imglist and imglist"
            raise ParamError(complaint("ImageIter", "path_imgrec", expected, None))
        every = list(range(len(self.imgrec))) if self.imgrec else list(self.imglist or ())
        size = len(every) // num_parts  # of all parts: what is left over is in none
        self.seq = every[size * part_index : size * (part_index + 1)]
        if not self.seq:
            raise FormatError("ImageIter: there are no images to read")
        width = () if label_width == 1 else (label_width,)
        shape = (batch_size, *self.data_shape)
        self.provide_data = [DataDesc(data_name, shape, np.dtype(dtype).type)]
        self.provide_label = [DataDesc(label_name, (batch_size, *width))]
        self.hard_reset()

    def _usual(self, **options: Any) -> list[Any]:
        """The augmenters that these options ask for."""
        return list(CreateAugmenter(self.data_shape, **options))

    def _listed(self, path: str | None, rows: Any) -> dict[int, tuple[Any, str]] | None:
        if path:
            text = read("ImageIter", path).decode(errors="replace")
            return {
                row.number: (np.array(row.labels, np.float32), row.path)
                for row in rows_of(path, text)
            }
        if rows is None:
            return None
        return {k: (np.atleast_1d(np.array(row[:-1], np.float32).squeeze()), row[-1])
                for k, row in enumerate(rows)}  # fmt: skip

    # epochs ---------------------------------------------------------------------------------

    def reset(self) -> None:
        """Start the next epoch."""
        if self.last_batch_handle != "roll_over":
            self._carried = None
        if self.shuffle:
            random.shuffle(self.seq)
        self.cur = 0

    def hard_reset(self) -> None:
        """Start anew, and forget rows carried over."""
        self._carried: tuple[tuple[Any, Any], int] | None = None
        self.reset()

    def next_sample(self) -> tuple[Any, bytes]:
        """Label and bytes of the next image.

        Raises:
            StopIteration: the epoch is over.
        """
        if self.cur >= len(self.seq):
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        return self._sample(key)

    def _sample(self, key: int) -> tuple[Any, bytes]:
        if self.imgrec is None:
            label, name = (self.imglist or {})[key]
            return label, self.read_image(name)
        record = self.imgrec[key]
        with naming(self._place(key)):
            header, data = recordio.unpack(record)
            if self.imglist is None:
                return header.label, data
            if header.id not in self.imglist:
                raise FormatError(f"record {header.id}: the list of images has no label for it")
        return self.imglist[header.id][0], data

    def _place(self, key: int) -> str:
        """Where a sample comes from, for errors."""
        if self.imgrec is None:
            return str((self.imglist or {})[key][1])
        return f"{self.imgrec.path}: offset {self.imgrec.offsets(key)}"

    def next(self) -> DataBatch:
        arrays, start = self._carried or (self._empty(), 0)
        self._carried = None
        filled = self._batchify(*arrays, start)
        missing = self.batch_size - filled
        if filled == 0 or (missing and self.last_batch_handle == "discard"):
            raise StopIteration
        if missing and self.last_batch_handle == "roll_over":
            self._carried = arrays, filled
            raise StopIteration
        if missing:
            self.cur = 0
            filled = self._batchify(*arrays, filled)
            for array in arrays:
                for k in range(filled, self.batch_size):
                    array[k] = array[k % filled]
            self.cur = len(self.seq)
        return DataBatch([arrays[0]], [arrays[1]], missing)

    def _empty(self) -> tuple[Any, Any]:
        """Arrays for the images and the labels of a batch."""
        label = self.provide_label[0].shape
        return nd.zeros(self.provide_data[0].shape, dtype=self.dtype), nd.zeros(label)

    def _batchify(self, batch_data: Any, batch_label: Any, start: int = 0) -> int:
        """Fill rows from `start` on with the next samples, as far as they go; gives the next row.

        Subclasses that fill batches otherwise have their own.
        """
        filled = start
        with suppress(StopIteration):
            while filled < self.batch_size:
                for image, label in self._row():
                    batch_data[filled] = image
                    batch_label[filled] = self._label_row(label)
                    filled += 1
        return filled

    def _row(self) -> list[tuple[Any, Any]]:
        """Image and label of the next sample; none where it is passed over."""
        label, data = self.next_sample()
        with naming(self._place(self.seq[self.cur - 1])):
            image = self.augmentation_transform(self.imdecode(data))
            label = np.atleast_1d(np.asarray(label, np.float32))
            if len(label) < self.label_width:
                expected = f"{self.label_width} labels"
                raise FormatError(f"ImageIter: expected {expected}, got {len(label)}")
        self.check_valid_image([image])
        return [(self.postprocess_data(image), label[: self.label_width])]

    def _label_row(self, label: Any) -> Any:
        """The label of a sample as it stands in a batch."""
        return label[0] if self.label_width == 1 else label

    # hooks ----------------------------------------------------------------------------------

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """Raise unless `data_shape` is (channels, height, width) with 1 or 3 channels."""
        sizes = data_shape if isinstance(data_shape, (tuple, list)) else ()
        if len(sizes) != 3 or sizes[0] not in (1, 3):
            expected, got = "(channels, height, width) with 1 or 3 channels", shown(data_shape)
            raise ParamError(complaint("ImageIter", "data_shape", expected, got))

    def check_valid_image(self, data: Sequence[Any]) -> None:
        """Raise ShapeError unless an image has the wanted shape after the augmenters."""
        channels, height, width = self.data_shape
        if data[0].shape != (height, width, channels):
            expected = f"shape {(height, width, channels)} after the augmenters"
            raise ShapeError(complaint("ImageIter", "aug_list", expected, data[0].shape))

    def imdecode(self, s: bytes) -> Any:
        """The image in compressed bytes."""
        return imdecode(s, flag=0 if self.data_shape[0] == 1 else 1)

    def read_image(self, fname: str) -> bytes:
        """The bytes of an image file below `path_root`."""
        return read("ImageIter", os.path.join(self.path_root or "", fname))  # noqa: PTH118

    def augmentation_transform(self, data: Any) -> Any:
        """The image after all augmenters."""
        for each in self.auglist:
            data = each(data)
        return data

    def postprocess_data(self, datum: Any) -> Any:
        """The image with its channels first."""
        return nd.transpose(datum, axes=(2, 0, 1))
