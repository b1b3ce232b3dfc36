"""Data iterators: batches of arrays for training and prediction.

The file of an iterator is imported when it is first asked for: those of images need many others.
"""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving
from gnomon.io import io as io
from gnomon.io.desc import DataBatch as DataBatch, DataDesc as DataDesc
from gnomon.io.iterator import DataIter as DataIter

if TYPE_CHECKING:
    from gnomon.io.array_iter import NDArrayIter as NDArrayIter, _init_data as _init_data
    from gnomon.io.csv_iter import CSVIter as CSVIter
    from gnomon.io.image_det_record import ImageDetRecordIter as ImageDetRecordIter
    from gnomon.io.image_record import (
        ImageRecordInt8Iter as ImageRecordInt8Iter,
        ImageRecordIter as ImageRecordIter,
        ImageRecordIter_v1 as ImageRecordIter_v1,
        ImageRecordUInt8Iter as ImageRecordUInt8Iter,
        ImageRecordUInt8Iter_v1 as ImageRecordUInt8Iter_v1,
    )
    from gnomon.io.libsvm import LibSVMIter as LibSVMIter
    from gnomon.io.mnist import MNISTIter as MNISTIter
    from gnomon.io.prefetch import PrefetchingIter as PrefetchingIter
    from gnomon.io.resize import ResizeIter as ResizeIter
    from gnomon.io.source import MXDataIter as MXDataIter

_FILES = {
    "array_iter": "NDArrayIter _init_data",
    "csv_iter": "CSVIter",
    "image_det_record": "ImageDetRecordIter",
    "image_record": "ImageRecordInt8Iter ImageRecordIter ImageRecordIter_v1 ImageRecordUInt8Iter"
    " ImageRecordUInt8Iter_v1",
    "libsvm": "LibSVMIter",
    "mnist": "MNISTIter",
    "prefetch": "PrefetchingIter",
    "resize": "ResizeIter",
    "source": "MXDataIter",
}

__getattr__, __dir__ = resolving(__name__, _FILES, ("DataBatch", "DataDesc", "DataIter", "io"))
