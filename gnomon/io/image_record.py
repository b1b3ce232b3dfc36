"""Batches of the images in record files with a label or several: `ImageRecordIter` and its like."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.base import FormatError
from gnomon.image.default_augmenter import DefaultAugmenter, mirrored
from gnomon.io.desc import DataDesc
from gnomon.io.record_images import Place, RecordImages
from gnomon.ops.param import param
from gnomon.recordio.header import opencv


class ImageRecordIter(DefaultAugmenter, RecordImages):
    """Batches (n, channels, height, width) of the images in a record file, and their labels.

    The last batch goes on with the next epoch's first images where `round_batch`, and else with
    the same epoch's; `pad` says how many. With `skip_corrupt` damaged records and images are passed
    over and counted in `skipped`. The output is `((x - mean) * c + i) * scale / std` with a random
    contrast c and illumination i.

    Raises:
        GnomonError: the file cannot be read; OpenCV is not installed.
        FormatError: a record or an image is damaged; it names file and offset.
    """

    aug_seq: str = param("aug_default", choices=("aug_default",), doc="The augmenter.")
    label_width: int = param(1, low=1, doc="Labels of an image.")
    mirror: bool = param(False, doc="Mirror every image.")
    rand_mirror: bool = param(False, doc="Mirror half of the images.")
    max_random_contrast: float = param(0.0, doc="How far a contrast may be from 1.")
    max_random_illumination: float = param(0.0, doc="How much may be added.")

    def _prepare(self) -> None:
        self.check_crop(*self.data_shape[1:])

    @property
    def provide_label(self) -> list[DataDesc]:
        """The description of a batch's labels."""
        width = () if self.label_width == 1 else (self.label_width,)
        return [DataDesc(self.label_name, (self.batch_size, *width))]

    def _checked(self, label: Any, number: int) -> Any:
        most = len(label) if self.path_imglist else self.label_width  # lists may have more
        if not self.label_width <= len(label) <= most:
            expected = f"{self.label_width} labels (label_width)"
            raise FormatError(f"record {number}: expected {expected}, got {len(label)}")
        return label[: self.label_width]

    def _made(self, row: Place, rng: np.random.Generator) -> tuple[Any, Any]:
        image, label = self._loaded(row.record)
        image = self.augment(image, self.data_shape[1:], rng)
        if self.mirror or (self.rand_mirror and rng.random() < 0.5):
            image = mirrored(opencv(type(self).__name__), image)
        return image, label

    def _draws(self, rows: list[Place]) -> tuple[Any, Any] | None:
        if not self._scaled or not (self.max_random_contrast or self.max_random_illumination):
            return None
        drawn = np.array([self._generator(row, 1).uniform(-1, 1, 2) for row in rows])
        contrast = 1 + drawn[:, 0] * self.max_random_contrast
        return contrast, drawn[:, 1] * self.max_random_illumination


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` of uint8, the colours as they are: means and scales do not count."""

    kind = "uint8"


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` of int8: means are subtracted, scales do not count.

    What lies outside is the nearest value, -128 or 127.
    """

    kind = "int8"


ImageRecordIter_v1 = ImageRecordIter
ImageRecordUInt8Iter_v1 = ImageRecordUInt8Iter
