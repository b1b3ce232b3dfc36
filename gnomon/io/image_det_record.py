"""`ImageDetRecordIter`: batches of images in record files, and the boxes of the objects in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import recordio
from gnomon.base import FormatError, ParamError, complaint
from gnomon.image.det_default_augmenter import DetDefaultAugmenter
from gnomon.io.desc import DataDesc
from gnomon.io.record_images import Place, RecordImages
from gnomon.ops.param import param

HEAD = 4  # numbers before an image's own label: channels, height and width, length of the label


class ImageDetRecordIter(DetDefaultAugmenter, RecordImages):
    """Batches (n, channels, height, width) of images, and labels (n, numbers) of the objects.

    A row of labels is `channels, height, width` of the image in the batch (the rest of its place is
    0), the length of its label, and that label: `[header, width, ..., objects]` with `header`
    numbers before the objects (2 at least) and `width` numbers for each (5 at least): class, left,
    top, right, bottom as shares of the image's size, and what else there is. `label_pad_value`
    fills it up to the longest label, or to `label_pad_width`.

    Raises:
        GnomonError: the file cannot be read; OpenCV is not installed.
        FormatError: a record, an image or a label is damaged; it names file and offset.
        ParamError: options that contradict each other; a `label_pad_width` that is too small.
    """

    aug_seq: str = param("det_aug_default", choices=("det_aug_default",), doc="The augmenter.")
    label_width: int = param(-1, doc="Length that all labels must have; -1 for any.")
    label_pad_width: int = param(
        0, high=1 << 20, doc="Length of labels in a batch; 0 for that of the longest."
    )
    label_pad_value: float = param(-1.0, doc="What fills labels up.")
    std_r: float = param(0.0, doc="What red is divided by, if it is above 0.")
    std_g: float = param(0.0, doc="What green is divided by, if it is above 0.")
    std_b: float = param(0.0, doc="What blue is divided by, if it is above 0.")
    std_a: float = param(0.0, doc="What alpha is divided by, if it is above 0.")

    def _prepare(self) -> None:
        self._samplers = self.samplers()
        longest = max((self._length(number) for number in self._part), default=0)
        if 0 < self.label_pad_width < longest:
            expected = f"{longest} or more, the length of the longest label"
            where, got = type(self).__name__, self.label_pad_width
            raise ParamError(complaint(where, "label_pad_width", expected, got))
        self._longest = max(longest, self.label_pad_width)
        self._unlabelled = self.label_pad_value

    def _length(self, number: int) -> int:
        """How long the label of a record is; 0 where it is damaged and may be passed over."""
        try:
            header, _ = recordio.unpack(self._records[number])
            label = self._label(header)
            return len(self._checked(np.atleast_1d(label), header.id))
        except FormatError as error:
            if self.skip_corrupt:
                return 0
            raise self._damage(number, error) from error

    def _deviations(self, std: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.where(std > 0, std, 1)

    @property
    def provide_label(self) -> list[DataDesc]:
        """The description of a batch's labels."""
        return [DataDesc(self.label_name, (self.batch_size, HEAD + self._longest))]

    def _checked(self, label: Any, number: int) -> Any:
        if self.label_width > 0 and len(label) != self.label_width:
            expected = f"{self.label_width} numbers (label_width)"
            raise FormatError(f"record {number}: expected {expected}, got {len(label)}")
        header, width = map(int, np.nan_to_num(label[:2]) if len(label) > 1 else (0, 0))
        if header < 2 or width < 5 or len(label) < header or (len(label) - header) % width:
            expected = "a label [header, width, ..., objects] with 5 numbers or more for each"
            got = f"{len(label)} numbers, of them {header} before objects of {width}"
            raise FormatError(f"record {number}: expected {expected}, got {got}")
        return label

    def _made(self, row: Place, rng: np.random.Generator) -> tuple[Any, Any]:
        image, label = self._loaded(row.record)
        header, width = int(label[0]), int(label[1])
        objects = label[header:].reshape(-1, width)
        image, objects = self.augment(image, objects, self.data_shape[1:], rng)
        height, wide, channels = image.shape
        head = [channels, height, wide, header + objects.size]
        return image, np.concatenate([head, label[:header], objects.ravel()]).astype(np.float32)
