"""Metrics of predicted probabilities, and the mean of an output that is a loss already."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.metric.base import EvalMetric, NamedMetric, numbers, register


def chosen_probabilities(where: str, label: np.ndarray, pred: np.ndarray) -> np.ndarray:
    """The probability that each row of `pred` (rows, classes) gives to its label."""
    index = label.ravel().astype(np.int64)
    if pred.ndim != 2 or pred.shape[0] != index.size:
        expected = f"shape ({index.size}, classes) for {index.size} labels"
        raise ShapeError(complaint(where, "preds", expected, pred.shape))
    if index.size and not (-pred.shape[1] <= index.min() and index.max() < pred.shape[1]):
        expected = f"classes below {pred.shape[1]}"
        raise ShapeError(complaint(where, "labels", expected, (index.min(), index.max())))
    return pred[np.arange(index.size), index]


@register("ce")
class CrossEntropy(EvalMetric):
    """Mean of -log(probability of the label + eps).

    >>> import numpy as np
    >>> metric = CrossEntropy()
    >>> metric.update([np.array([1])], [np.array([[0.5, 0.5]])])
    >>> round(metric.get()[1], 4)
    0.6931
    """

    def __init__(
        self,
        eps: float = 1e-12,
        name: Any = "cross-entropy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    def measure(self, label: np.ndarray, pred: np.ndarray) -> tuple[float, int]:
        chosen = chosen_probabilities(type(self).__name__, label, pred)
        return float(-np.log(chosen + self.eps).sum()), chosen.size


@register("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """The same as CrossEntropy, under its name in statistics."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: Any = "nll-loss",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """exp of the mean of -log(probability of the label), labels along all other axes than `axis`.

    Labels equal to `ignore_label` do not count (None: all count); others out of range count as the
    first or the last class.
    """

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: Any = "perplexity",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            name, output_names, label_names, ignore_label=ignore_label, has_global_stats=True
        )
        self.ignore_label = ignore_label
        self.axis = axis

    def measure(self, label: np.ndarray, pred: np.ndarray) -> tuple[float, int]:
        rows = np.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
        kept = np.ones(label.size, dtype=bool)
        if self.ignore_label is not None:
            kept = label.ravel().astype(np.int64) != int(self.ignore_label)
        if kept.size != rows.shape[0]:
            raise ShapeError(complaint("Perplexity", "preds", f"{kept.size} rows", pred.shape))
        index = label.ravel()[kept].clip(0, rows.shape[1] - 1)
        chosen = chosen_probabilities("Perplexity", index, rows[kept])
        return float(-np.log(np.maximum(chosen, 1e-10)).sum()), chosen.size

    def summary(self, total: float, count: int) -> float:
        return math.exp(total / count) if count else float("nan")


@register
class Loss(NamedMetric):
    """Mean of all elements of the outputs; labels are not looked at."""

    _name = "loss"

    def update(self, _: Any, preds: Any) -> None:
        for pred in preds if isinstance(preds, (list, tuple)) else [preds]:
            values = numbers(type(self).__name__, "preds", pred)
            self._add(float(values.sum()), values.size)


@register
class Torch(Loss):
    """Loss under the name `torch`."""

    _name = "torch"


@register
class Caffe(Loss):
    """Loss under the name `caffe`."""

    _name = "caffe"
