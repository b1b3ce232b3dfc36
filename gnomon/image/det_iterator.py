"""`ImageDetIter`: batches of images and of the boxes of the objects in them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import DTypeError, FormatError, ParamError, complaint
from gnomon.ground.files import naming
from gnomon.image.augmenters import MEAN, STD
from gnomon.image.detection import CreateDetAugmenter, Label
from gnomon.image.iterator import ImageIter
from gnomon.io.desc import DataDesc
from gnomon.recordio.header import opencv

log = logging.getLogger(__name__)

BOX = 5  # the least numbers of an object: class and four edges
NO_OBJECT = -1.0


class ImageDetIter(ImageIter):
    """Batches (n, channels, height, width) of images, and labels (n, objects, numbers) of boxes.

    The label of an image is `[header, width, ..., objects]`: how many numbers stand before the
    objects (2 at least) and how many each object has (5 at least): class, left, top, right, bottom
    as shares of the image's size, and what else there is. Boxes without an area are left out; an
    image without objects is passed over, logged and counted in `skipped`. Rows of -1 fill labels up
    to the largest number of objects that an image has.

    Images are found as by `ImageIter`; what else is given goes to `CreateDetAugmenter`, unless
    `aug_list` says what is done.

    Raises:
        ParamError: there is no source of images; an option that is not allowed.
        FormatError: a label of another form, or an image that is broken.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[Any] | None = None,
        imglist: Sequence[Sequence[Any]] | None = None,
        data_name: str = "data",
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            batch_size,
            data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=aug_list,
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
            **kwargs,
        )
        self.skipped = 0
        self.label_shape = self._estimate_label_shape()
        self._describe()
        for _ in range(2):  # as MXNet, which resets around reading the labels: a seed's order
            self.reset()

    def _usual(self, **options: Any) -> list[Any]:
        return list(CreateDetAugmenter(self.data_shape, **options))

    def _describe(self) -> None:
        """Say of batches what `data_shape` and `label_shape` make of them."""
        (data,), (label,) = self.provide_data, self.provide_label
        self.provide_data = [DataDesc(data.name, (self.batch_size, *self.data_shape), data.dtype)]
        self.provide_label = [DataDesc(label.name, (self.batch_size, *self.label_shape))]

    # labels ---------------------------------------------------------------------------------

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The most objects that an image has, and how many numbers each; subclasses may know."""
        shapes = {self._objects(self._label(key), key).shape for key in self.seq}
        widths = sorted({width for _, width in shapes})
        if len(widths) > 1:
            expected = "objects of the same number of numbers"
            raise FormatError(f"ImageDetIter: expected {expected}, got {widths}")
        return max(count for count, _ in shapes), widths[0]

    def _label(self, key: int) -> Label:
        if self.imgrec is None:
            return np.asarray((self.imglist or {})[key][0], np.float32)
        return np.asarray(self._sample(key)[0], np.float32)

    def _objects(self, label: Label, key: int) -> Label:
        """The objects of a sample's label as rows, those without an area left out."""
        with naming(self._place(key)):
            return self._parse_label(label)

    def _parse_label(self, label: Label) -> Label:
        """The same of the numbers alone; subclasses that keep them otherwise have their own."""
        expected = "[header, width, ..., objects] with 5 numbers or more for each object"
        if label.size < 2 + BOX:
            raise FormatError(f"ImageDetIter: expected {expected}, got {label.size} numbers")
        header, width = map(int, np.nan_to_num(label[:2]))
        if header < 2 or width < BOX or (label.size - header) % width:
            got = f"{label.size} numbers, of them {header} before objects of {width}"
            raise FormatError(f"ImageDetIter: expected {expected}, got {got}")
        objects = label[header:].reshape(-1, width)
        objects = objects[(objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])]
        if not len(objects):
            raise FormatError("ImageDetIter: expected an object with an area, got none in a label")
        return objects

    def _row(self) -> list[tuple[Any, Any]]:
        raw, data = self.next_sample()
        key = self.seq[self.cur - 1]
        objects = self._objects(np.asarray(raw, np.float32), key).copy()
        with naming(self._place(key)):
            image = self.imdecode(data)
        image, objects = self.augmentation_transform(image, objects)
        self.check_valid_image([image])
        try:
            self._check_valid_label(objects)
        except RuntimeError as error:
            self.skipped += 1
            number = self.cur - 1
            log.warning("ImageDetIter: no object in sample %d; passed over: %s", number, error)
            return []
        return [(self.postprocess_data(image), objects)]

    def _check_valid_label(self, label: Label) -> None:
        """Raise unless an object is left after the augmenters; the image is passed over then."""
        seen = (label[:, 3] > label[:, 1]) & (label[:, 4] > label[:, 2])
        if not (seen & (label[:, 0] >= 0)).any():
            raise FormatError("expected an object with an area, got none")

    def _empty(self) -> tuple[Any, Any]:
        data, label = super()._empty()
        return data, nd.full(label.shape, NO_OBJECT)

    def _label_row(self, label: Any) -> Any:
        missing = np.full((self.label_shape[0] - len(label), label.shape[1]), NO_OBJECT, np.float32)
        return np.concatenate([label, missing])

    def augmentation_transform(self, data: Any, label: Any = None) -> Any:
        """Image and objects after all augmenters."""
        for each in self.auglist:
            data, label = each(data, label)
        return data, label

    # shapes ---------------------------------------------------------------------------------

    def reshape(
        self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None
    ) -> None:
        """Give batches another shape from now on; the augmenters must make images of it.

        Raises:
            ParamError: `label_shape` has fewer objects than before, or objects of another width.
        """
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = (label_shape[0], label_shape[1])
        self._describe()

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """Raise ParamError unless labels fit into `label_shape` (objects, numbers of each)."""
        count, width = self.label_shape
        if len(label_shape) != 2 or label_shape[0] < count or label_shape[1] != width:
            expected = f"({count} or more, {width})"
            raise ParamError(complaint("ImageDetIter", "label_shape", expected, label_shape))

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Give this iterator and `it` the larger label shape of both; gives `it`.

        For a network that takes the batches of both, as for training and validation.

        Raises:
            DTypeError: `it` is no ImageDetIter.
            ParamError: their objects differ in width.
        """
        if not isinstance(it, ImageDetIter):
            got = type(it).__name__
            raise DTypeError(complaint("sync_label_shape", "it", "an ImageDetIter", got))
        shape = (max(self.label_shape[0], it.label_shape[0]), self.label_shape[1])
        for each in (self, it):
            if verbose and each.label_shape != shape:
                log.info("label_shape %s -> %s", each.label_shape, shape)
            each.reshape(label_shape=shape)
        return it

    # pictures -------------------------------------------------------------------------------

    def draw_next(
        self,
        color: Sequence[int] | None = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        waitKey: int | None = None,
        window_name: str = "draw_next",
        id2labels: Mapping[int, str] | None = None,
    ) -> Iterator[Any]:
        """The images from here on, uint8 (height, width, 3) in OpenCV's order, boxes drawn in.

        Args:
            color: of boxes as (red, green, blue); None takes any.
            mean, std: what images were normalized by, to undo it; True for ImageNet's.
            clip: colours end at 0 and 255; else they wrap around.
            waitKey: shows each image in a window for so many milliseconds, 0 for a key.
            id2labels: names of classes, to write beside the boxes.
        """
        cv2 = opencv("draw_next")
        draw = _Drawing(cv2, color, thickness, id2labels or {})
        while self.cur < len(self.seq):
            for image, objects in self._row():
                picture = np.transpose(image.asnumpy(), (1, 2, 0)).astype(np.float32)
                picture = picture * _colours(STD if std is True else std, 1.0)
                picture = picture + _colours(MEAN if mean is True else mean, 0.0)
                if clip:
                    picture = np.clip(picture, 0, 255)
                whole = picture.astype(np.int64).astype(np.uint8)
                whole = np.ascontiguousarray(whole[:, :, ::-1])
                for each in objects:
                    draw(whole, each)
                if waitKey is not None:
                    cv2.imshow(window_name, whole)
                    cv2.waitKey(waitKey)
                yield whole


class _Drawing:
    """Draws boxes into pictures."""

    def __init__(self, cv2: Any, color: Any, thickness: int, names: Any) -> None:
        self._cv2, self._color, self._thickness, self._names = cv2, color, thickness, names

    def __call__(self, picture: Any, box: Label) -> None:
        height, width = picture.shape[:2]
        kind = int(box[0])
        left, top, right, bottom = (box[1:5] * [width, height, width, height]).astype(int).tolist()
        rgb = np.random.rand(3) * 255 if self._color is None else self._color
        bgr = [float(c) for c in rgb][::-1]
        self._cv2.rectangle(picture, (left, top), (right, bottom), bgr, self._thickness)
        if kind in self._names:
            font = self._cv2.FONT_HERSHEY_SIMPLEX
            self._cv2.putText(picture, self._names[kind], (left, top - 5), font, 0.5, bgr, 1)


def _colours(given: Any, otherwise: float) -> Any:
    if given is None:
        return otherwise
    return given.asnumpy() if isinstance(given, nd.NDArray) else np.asarray(given)
