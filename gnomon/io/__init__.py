"""Data iterators: batches of arrays for training and prediction.

The file of an iterator is imported when it is first asked for: those of images need many others.
"""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving
from gnomon.io import io
from gnomon.io.desc import DataBatch, DataDesc
from gnomon.io.iterator import DataIter

if TYPE_CHECKING:
    from gnomon.io.array_iter import NDArrayIter
    from gnomon.io.csv_iter import CSVIter
    from gnomon.io.image_det_record import ImageDetRecordIter
    from gnomon.io.image_record import (
        ImageRecordInt8Iter,
        ImageRecordIter,
        ImageRecordIter_v1,
        ImageRecordUInt8Iter,
        ImageRecordUInt8Iter_v1,
    )
    from gnomon.io.libsvm import LibSVMIter
    from gnomon.io.mnist import MNISTIter
    from gnomon.io.prefetch import PrefetchingIter
    from gnomon.io.resize import ResizeIter
    from gnomon.io.source import MXDataIter

__all__ = [
    "CSVIter",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordUInt8Iter",
    "ImageRecordUInt8Iter_v1",
    "LibSVMIter",
    "MNISTIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "MXDataIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
    "io",
]

_FILES = {
    "array_iter": "NDArrayIter",
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

__getattr__, __dir__ = resolving(__name__, _FILES, __all__)
