"""Evaluation metrics: running averages over batches of labels and predictions.

A metric is one file of this folder, or a family of them: it is public once it is there.
"""

from gnomon import ndarray
from gnomon.ground.folder_registry import public
from gnomon.metric.base import METRICS, EvalMetric, alias, check_label_shapes, register
from gnomon.metric.composite import create
from gnomon.metric.counts import Counts as _BinaryClassificationMetrics
from gnomon.metric.custom import np

__all__ = [
    "EvalMetric",
    "_BinaryClassificationMetrics",
    "alias",
    "check_label_shapes",
    "create",
    "ndarray",
    "np",
    "register",
]

__getattr__, __dir__ = public(METRICS, __all__)
