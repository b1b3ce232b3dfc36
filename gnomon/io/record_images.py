"""Images of record files in batches, made by threads ahead of the program: what iterators share.

State: `_epoch` is the epoch that the program reads, `_given` whether its last batch was given out,
`_at` where in it the next batch begins. Batches are planned in order, over the ends of epochs, up
to `prefetch_buffer` of them ahead: `_plan` gives the next one to be begun, `_ahead` holds those
under way, `_starts` says where epochs begin. `reset` behind an epoch's end goes on with what is
under way; within an epoch the next one begins from its first record. A forked child begins what was
under way with threads of its own. Random numbers of an image follow from seed, epoch and record
alone, so the number of threads changes nothing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gnomon import ndarray as nd
from gnomon import recordio
from gnomon.base import FormatError, ParamError, complaint
from gnomon.ground.bar import Bar
from gnomon.image.codec import decode
from gnomon.io.ahead import Ahead, Future
from gnomon.io.desc import DataBatch, DataDesc
from gnomon.io.normalize import Normalizer
from gnomon.io.source import Part, SourceIter, read
from gnomon.ops.host import counted
from gnomon.ops.param import Dims, param
from gnomon.recordio.header import opencv
from gnomon.recordio.listing import rows as rows_of
from gnomon.recordio.source import Records


class Place(NamedTuple):
    """A row of a batch: the record, and the epoch that it is taken in."""

    record: int
    epoch: int


class Batch(NamedTuple):
    """A batch under way: its memory, and the work that fills it."""

    last: bool
    pad: int
    rows: list[Place]
    pixels: Any
    labels: np.ndarray[Any, Any]
    work: list[Future[None]]


class RecordImages(Part, SourceIter):
    """Base of iterators over image records: a subclass says what becomes of a record.

    That is `_made`, with the options of its augmenter, and `provide_label`.
    """

    path_imgrec: str = param(doc="The record file.")
    path_imglist: str = param("", doc="A list whose labels count in place of the records'.")
    path_imgidx: str = param("", doc="The index of the file; tells how parts are cut.")
    data_shape: Dims = param(low=1, doc="(channels, height, width) of the output.")
    preprocess_threads: int = param(4, low=1, doc="Threads that decode and augment.")
    verbose: bool = param(True, doc="Not used.")
    device_id: int = param(0, doc="Not used.")
    shuffle_chunk_size: int = param(
        0, low=0, doc="MB of chunks, taken in another order each epoch."
    )
    shuffle_chunk_seed: int = param(0, low=0, doc="What the order of chunks is drawn by.")
    seed_aug: int | None = param(None, doc="What the augmenter draws by; `seed` where None.")
    shuffle: bool = param(False, doc="Another order each epoch, of all or within each chunk.")
    seed: int = param(0, low=0, doc="What the order is drawn by.")
    round_batch: bool = param(True, doc="Go on with the next epoch in the last batch.")
    skip_corrupt: bool = param(False, doc="Pass over what is damaged.")
    scaled_decoding: bool = param(
        False, doc="Decode JPEGs at 1/2, 1/4 or 1/8 of their size where `resize` allows it."
    )
    mean_img: str = param("", doc="File of the image to subtract; made where it is missing.")
    mean_r: float = param(0.0, doc="What is subtracted from red.")
    mean_g: float = param(0.0, doc="What is subtracted from green.")
    mean_b: float = param(0.0, doc="What is subtracted from blue.")
    mean_a: float = param(0.0, doc="What is subtracted from alpha.")
    std_r: float = param(1.0, doc="What red is divided by.")
    std_g: float = param(1.0, doc="What green is divided by.")
    std_b: float = param(1.0, doc="What blue is divided by.")
    std_a: float = param(1.0, doc="What alpha is divided by.")
    scale: float = param(1.0, doc="What all is multiplied by.")

    kind: str | None = None  # of the data, whatever `dtype` says
    resize: int  # an option of every augmenter
    _process = 0  # whose threads are at work
    _unlabelled = 0.0  # what stands in labels behind their end

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        where = type(self).__name__
        if len(self.data_shape) != 3 or self.data_shape[0] not in (1, 3, 4):
            expected = "(channels, height, width) with 1, 3 or 4 channels"
            raise ParamError(complaint(where, "data_shape", expected, self.data_shape))
        self._records = Records(where, self.path_imgrec, skip_corrupt=self.skip_corrupt)
        self._part = self.part(len(self._records), indexed=bool(self.path_imgidx))
        if not self._part:
            raise FormatError(f"{where}: there are no records in {self.path_imgrec!r}")
        self._damaged: set[int] = set()
        self._listed = self._labels_of_list() if self.path_imglist else {}
        self._orders: dict[int, np.ndarray[Any, Any]] = {}
        self._prepare()
        self._normalizer = self._made_normalizer()
        self._begin(0)

    def _prepare(self) -> None:
        """What a subclass does before the first epoch."""

    def _made(self, row: Place, rng: np.random.Generator) -> tuple[Any, Any]:
        """Image and label of a row of a batch; the image may be smaller than `data_shape`."""
        raise TypeError(f"{type(self).__name__} does not say what becomes of a record")

    # what is given out ----------------------------------------------------------------------

    @property
    def skipped(self) -> int:
        """How many damaged records and images were passed over."""
        return self._records.skipped + len(self._damaged)

    @property
    def provide_data(self) -> list[DataDesc]:
        """The description of a batch's images."""
        dtype = np.dtype(self._kind).type
        return [DataDesc(self.data_name, (self.batch_size, *self.data_shape), dtype)]

    @property
    def _kind(self) -> str:
        """The dtype of the data: of uint8 the colours stay, of int8 means alone count."""
        return self.kind or self.dtype or "float32"

    @property
    def _scaled(self) -> bool:
        """Whether scales, deviations and contrasts count."""
        return self._kind not in ("int8", "uint8")

    def _begin(self, epoch: int, start: int = 0) -> None:
        self._epoch, self._given = epoch, False
        self._first = start
        self._go_on(start)

    def _go_on(self, at: int) -> None:
        """Have threads make the batches from a place in the epoch on."""
        if self._process != os.getpid():  # a forked child has no threads
            self._process = os.getpid()
            self._threads = Ahead(self.preprocess_threads)
        self._plan = self._planned(self._epoch, at)
        self._at = at
        self._ahead: deque[Batch] = deque()

    def reset(self) -> None:
        """Start the next epoch; this one, if nothing of it was given out."""
        if self._given:
            self._epoch, self._given = self._epoch + 1, False
            self._first = self._at = self._starts[self._epoch]
            self._starts = {k: v for k, v in self._starts.items() if k >= self._epoch}
        elif self._at > self._first:
            self._begin(self._epoch + 1)

    def _following(self) -> DataBatch | None:
        if self._given:
            return None
        if self._process != os.getpid():
            self._go_on(self._at)
        while len(self._ahead) <= self.prefetch_buffer:
            self._ahead.append(next(self._plan))
        batch = self._ahead.popleft()
        self._given = batch.last
        self._at += self.batch_size
        for part in batch.work:
            part.result()
        data = self._normalizer.apply(batch.pixels, self._draws(batch.rows))
        (desc,) = self.provide_label
        labels = batch.labels.reshape(desc.shape)
        index = np.array([row.record for row in batch.rows], np.uint64)
        return DataBatch([data], [nd.array(labels)], batch.pad, index)

    # what comes when ------------------------------------------------------------------------

    def _planned(self, epoch: int, start: int) -> Iterator[Batch]:
        """All batches from a place in an epoch on, without end, each begun when it is asked for."""
        count, size = len(self._part), self.batch_size
        self._starts = {epoch: start}
        while True:
            at = self._starts[epoch]
            while at < count:
                rows = [self._place(epoch, at + k) for k in range(size)]
                at += size
                if at >= count:
                    self._starts[epoch + 1] = (at - count) % count if self.round_batch else 0
                yield self._begun(at >= count, max(0, at - count), rows)
            epoch += 1

    def _place(self, epoch: int, at: int) -> Place:
        over, at = divmod(at, len(self._part))
        epoch += over if self.round_batch else 0
        if epoch not in self._orders:
            self._orders[epoch] = self._order(epoch)
            self._orders.pop(epoch - 8, None)
        return Place(int(self._orders[epoch][at]), epoch)

    def _order(self, epoch: int) -> np.ndarray[Any, Any]:
        """The records of this part in an epoch's order."""
        order = np.array(self._part)
        if self.shuffle:
            np.random.default_rng([self.seed, epoch]).shuffle(order)
        if self.shuffle_chunk_size:
            chunk = self._records.offsets(order) // (self.shuffle_chunk_size << 20)
            drawn = np.random.default_rng([self.shuffle_chunk_seed, epoch])
            order = order[np.argsort(drawn.permutation(chunk.max() + 1)[chunk], kind="stable")]
        return order

    def _begun(self, last: bool, pad: int, rows: list[Place]) -> Batch:
        pixels = nd.empty((len(rows), *self.data_shape), dtype="uint8")
        (desc,) = self.provide_label
        labels = np.full((len(rows), *(desc.shape[1:] or (1,))), self._unlabelled, np.float32)
        memory, step = pixels._numpy(), -(-len(rows) // self.preprocess_threads)
        shares = [range(k, min(k + step, len(rows))) for k in range(0, len(rows), step)]
        made = [Future(partial(self._fill, rows, share, memory, labels)) for share in shares]
        work = [self._threads.begin(future) for future in made]
        return Batch(last, pad, rows, pixels, labels, work)

    # one image ------------------------------------------------------------------------------

    def _fill(self, rows: list[Place], which: range, pixels: Any, labels: Any) -> None:
        """A thread's share of a batch."""
        for k in which:
            image, label = self._made(rows[k], self._generator(rows[k]))
            self._store(image, pixels[k])
            labels[k, : len(label)] = label

    def _store(self, image: Any, planes: Any) -> None:
        """The image (height, width, channels) in a batch's memory, channel after channel.

        Told apart while it is in the cache, by OpenCV: a kernel that reads a batch of colours side
        by side takes 2.5 times as long as one that reads them apart. OpenCV itself takes 6 times as
        long where rows have gaps, as those of a crop; the copy of one takes a fifth of that.
        """
        height, width, channels = image.shape
        if channels > 1 and (height, width) == planes.shape[1:]:
            opencv(type(self).__name__).split(np.ascontiguousarray(image), [*planes])
            return
        planes[:] = 0
        planes[:, :height, :width] = image.transpose(2, 0, 1)

    def _generator(self, row: Place, more: int = 0) -> np.random.Generator:
        seed = self.seed if self.seed_aug is None else self.seed_aug
        return counted((seed, row.epoch), (0, 0, row.record, more))

    def _loaded(self, record: int) -> tuple[Any, Any]:
        """Image and label of a record; of the next sound one where it may be passed over."""
        start, count = self._part.start, len(self._part)
        for step in range(count):
            number = start + (record - start + step) % count
            try:
                return self._read(number)
            except FormatError as error:
                if not self.skip_corrupt:
                    raise self._damage(number, error) from error
                self._damaged.add(number)
        raise FormatError(f"{self.path_imgrec}: there is no sound image among {count} records")

    def _damage(self, number: int, error: FormatError) -> FormatError:
        """The error of a record, with its place in the file."""
        at = self._records.offsets(number)
        return FormatError(f"{self.path_imgrec}: offset {at}: {error}")

    def _read(self, number: int) -> tuple[Any, Any]:
        header, data = recordio.unpack(self._records[number])
        label = np.array(self._label(header), ndmin=1)
        label = self._checked(label, header.id)
        edge = max(0, self.resize) if self.scaled_decoding else 0
        image = decode(type(self).__name__, data, self.data_shape[0], edge=edge)
        if image.shape[2] != self.data_shape[0]:
            expected = f"{self.data_shape[0]} channels"
            raise FormatError(f"record {header.id}: expected {expected}, got {image.shape[2]}")
        return image, label

    def _label(self, header: recordio.IRHeader) -> Any:
        """The label of a record: that of the list, where there is a list.

        Raises:
            FormatError: the list has none for it.
        """
        if not self.path_imglist:
            return header.label
        if header.id not in self._listed:
            raise FormatError(f"record {header.id}: {self.path_imglist!r} has no label for it")
        return self._listed[header.id]

    def _checked(self, label: Any, number: int) -> Any:
        """The label of the image `number`, as far as it counts; FormatError if it is too short."""
        return label

    def _labels_of_list(self) -> dict[int, np.ndarray[Any, Any]]:
        text = read(type(self).__name__, self.path_imglist).decode(errors="replace")
        listed = rows_of(self.path_imglist, text)
        return {row.number: np.array(row.labels, np.float32) for row in listed}

    # colours --------------------------------------------------------------------------------

    def _draws(self, rows: list[Place]) -> tuple[Any, Any] | None:
        """Contrast and illumination of each image, where they are drawn."""
        return None

    def _made_normalizer(self) -> Normalizer:
        channels = self.data_shape[0]
        dtype = self._kind
        if dtype == "uint8":
            return Normalizer(self.data_shape, np.zeros((channels, 1, 1)), np.ones(channels), dtype)
        mean = np.array([self.mean_r, self.mean_g, self.mean_b, self.mean_a][:channels])
        std = self._deviations(
            np.array([self.std_r, self.std_g, self.std_b, self.std_a][:channels])
        )
        wide: Any = mean.reshape(-1, 1, 1)
        if self.mean_img:
            wide = self._mean_image()
        factor = self.scale / std if self._scaled else np.ones(channels)
        return Normalizer(self.data_shape, wide, factor, dtype)

    def _deviations(self, std: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What colours are divided by, of what the options say."""
        if self._scaled and not std.all():
            raise ParamError(complaint(type(self).__name__, "std_r", "no deviation of 0", 0))
        return std

    def _mean_image(self) -> Any:
        """The image in `mean_img`, or the mean of all images, which is saved there."""
        if Path(self.mean_img).exists():
            stored = nd.load(self.mean_img)
            (image,) = stored.values() if isinstance(stored, dict) else stored
            if image.shape != self.data_shape:
                expected = f"an image of shape {self.data_shape}"
                raise FormatError(f"{self.mean_img}: expected {expected}, got {image.shape}")
            return image.asnumpy()
        total = np.zeros(self.data_shape)
        with Bar(len(self._part), self.mean_img) as bar:
            for record in self._part:
                small, _ = self._made(place := Place(record, 0), self._generator(place))
                total[:, : small.shape[0], : small.shape[1]] += small.transpose(2, 0, 1)
                bar.update()
        mean = (total / len(self._part)).astype(np.float32)
        nd.save(self.mean_img, {"mean_img": nd.array(mean)})
        return mean
