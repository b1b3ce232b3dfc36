"""Data iterators: batches of arrays for training and prediction."""

from gnomon.compatibility.absent import finding
from gnomon.io import io
from gnomon.io.array_iter import NDArrayIter
from gnomon.io.csv_iter import CSVIter
from gnomon.io.desc import DataBatch, DataDesc
from gnomon.io.image_det_record import ImageDetRecordIter
from gnomon.io.image_record import (
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordUInt8Iter,
    ImageRecordUInt8Iter_v1,
)
from gnomon.io.iterator import DataIter
from gnomon.io.libsvm import LibSVMIter
from gnomon.io.mnist import MNISTIter
from gnomon.io.prefetch import PrefetchingIter
from gnomon.io.resize import ResizeIter
from gnomon.io.source import SourceIter as MXDataIter

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

__getattr__ = finding(__name__, __all__)
