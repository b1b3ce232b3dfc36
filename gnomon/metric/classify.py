"""Metrics of class predictions: accuracies and what follows from the binary confusion table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from gnomon.base import ParamError, ShapeError, check_kind, complaint
from gnomon.metric.base import EvalMetric, check_label_shapes, register
from gnomon.metric.counts import Counts


def _largest(metric: EvalMetric, pred: np.ndarray, axis: int) -> np.ndarray:
    """Where predictions are largest along an axis; ShapeError where they have none such."""
    if not -pred.ndim <= axis < pred.ndim:
        where, expected = type(metric).__name__, f"scores along axis {axis}"
        raise ShapeError(complaint(where, "preds", expected, f"shape {pred.shape}"))
    found: np.ndarray = pred.argmax(axis=axis)
    return found


@register("acc")
class Accuracy(EvalMetric):
    """The share of labels that the prediction, or its maximum along `axis`, equals.

    >>> import numpy as np
    >>> metric = Accuracy()
    >>> metric.update([np.array([0, 1])], [np.array([[0.7, 0.3], [0.9, 0.1]])])
    >>> metric.get()
    ('accuracy', 0.5)
    """

    def __init__(
        self,
        axis: int = 1,
        name: Any = "accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis, has_global_stats=True)
        self.axis = axis

    def measure(self, label: np.ndarray, pred: np.ndarray) -> tuple[float, int]:
        if pred.shape != label.shape:
            pred = _largest(self, pred, self.axis)
        truth, guess = label.astype(np.int32).ravel(), pred.astype(np.int32).ravel()
        check_label_shapes(truth, guess, shape=True, where=type(self).__name__)
        return int((truth == guess).sum()), truth.size


@register("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of labels among the `top_k` largest of the predicted scores.

    Predictions: (rows, classes) scores, or (rows,) classes.
    """

    def __init__(
        self,
        top_k: int = 1,
        name: Any = "top_k_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        check_kind("TopKAccuracy", "top_k", top_k, Integral, "an int above 1")
        if top_k < 2:
            expected = "an int above 1 (Accuracy is the metric for 1)"
            raise ParamError(complaint("TopKAccuracy", "top_k", expected, top_k))
        super().__init__(
            f"{name}_{top_k}", output_names, label_names, top_k=top_k, has_global_stats=True
        )
        self.top_k = top_k

    def measure(self, label: np.ndarray, pred: np.ndarray) -> tuple[float, int]:
        if pred.ndim > 2:
            raise ShapeError(complaint("TopKAccuracy", "preds", "1 or 2 axes", pred.shape))
        truth = label.astype(np.int32).ravel()
        if pred.ndim == 1:
            return int((pred.astype(np.int32) == truth).sum()), truth.size
        if pred.shape[0] != truth.size:
            raise ShapeError(complaint("TopKAccuracy", "preds", f"{truth.size} rows", pred.shape))
        k = min(self.top_k, pred.shape[1])
        best = np.argpartition(pred.astype(np.float32), -k, axis=1)[:, -k:]
        return int((best == truth[:, None]).sum()), truth.size


class _Binary(EvalMetric):
    """Base of metrics of two-class problems.

    `macro` averages one score per update; `micro` scores all counts since the reset together.
    """

    _name: ClassVar[str]

    def __init__(
        self,
        name: Any = None,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:
        if average not in ("macro", "micro"):
            where = type(self).__name__
            raise ParamError(complaint(where, "average", "'macro' or 'micro'", average))
        self.average = average
        name = self._name if name is None else name
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True)

    def score(self, counts: Counts) -> float:
        """The metric's formula."""
        raise NotImplementedError(f"{type(self).__name__} must define score(counts)")

    def reset(self) -> None:
        super().reset()
        self._counts = Counts()
        self._global_counts = Counts()

    def reset_local(self) -> None:
        super().reset_local()
        self._counts = Counts()

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = dict(state)
        if (found := own.pop("metrics", None) or own.pop("_metrics", None)) is not None:
            own["average"] = own.pop("_average", own.get("average"))  # a pickle of MXNet
            own["_counts"], own["_global_counts"] = found.parts()
        self.__dict__.update(own)

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in self._pairs(labels, preds):
            truth, guess = self._binary(label, pred)
            self._counts.count(truth, guess)
            self._global_counts.count(truth, guess)
        if self.average == "macro":
            self._add(self.score(self._counts), 1)
            self._counts = Counts()
        else:
            self._set_totals()

    @property
    def metrics(self) -> Counts:
        """What was counted since the last reset, and with `macro` since the last update."""
        return self._counts

    def _set_totals(self) -> None:
        here, overall = self._counts, self._global_counts
        self.num_inst = here.total_examples
        self.sum_metric = self.score(here) * self.num_inst
        self.global_num_inst = overall.total_examples
        self.global_sum_metric = self.score(overall) * self.global_num_inst

    def _binary(self, label: np.ndarray, pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        guess = _largest(self, pred, 1)
        truth = label.astype(np.int32).ravel()
        check_label_shapes(truth, guess, shape=True, where=type(self).__name__)
        classes = np.unique(truth)
        if len(classes) > 2 or not np.isin(classes, (-1, 0, 1)).all() or pred.shape[1] > 2:
            found = f"classes {classes[:8].tolist()}, predictions {pred.shape}"
            expected = "two classes, 1 and 0 or -1"
            raise ParamError(complaint(type(self).__name__, "labels", expected, found))
        return truth == 1, guess == 1


@register
class F1(_Binary):
    """F1 score, the harmonic mean of precision and recall, of a two-class problem."""

    _name = "f1"

    def score(self, counts: Counts) -> float:
        return counts.fscore


@register
class MCC(_Binary):
    """Matthews correlation coefficient of a two-class problem, from -1 to 1."""

    _name = "mcc"

    def score(self, counts: Counts) -> float:
        return counts.matthewscc()


@register
class PCC(EvalMetric):
    """Pearson's correlation of classes and predictions, by the confusion table of all updates.

    With two classes it is `MCC(average="micro")`, but NaN where all are of one class.

    >>> import numpy as np
    >>> metric = PCC()
    >>> metric.update([np.array([0, 2, 1])], [np.eye(3)[[0, 2, 1]]])
    >>> metric.get()
    ('pcc', 1.0)
    """

    def __init__(
        self,
        name: Any = "pcc",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        has_global_stats: bool = True,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    def reset(self) -> None:
        super().reset()
        self._table = np.zeros((2, 2))
        self._global_table = self._table

    def reset_local(self) -> None:
        super().reset_local()
        self._table = np.zeros((2, 2))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "lcm" in state:  # a pickle of MXNet
            self._table, self._global_table = state["lcm"], state["gcm"]
            self._sum_up()

    def _sum_up(self) -> None:
        self.sum_metric = _correlation(self._table) * self.num_inst
        self.global_sum_metric = _correlation(self._global_table) * self.global_num_inst

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in self._pairs(labels, preds):
            new = self._confusion(label, pred)
            self._table = _joined(self._table, new)
            self._global_table = _joined(self._global_table, new)
        self.num_inst += 1
        self.global_num_inst += 1
        self._sum_up()

    def _confusion(self, label: np.ndarray, pred: np.ndarray) -> np.ndarray:
        """How often each class (column) was predicted as each (row)."""
        if pred.shape != label.shape:
            pred = _largest(self, pred, 1)
        truth, guess = label.astype(np.int64).ravel(), pred.astype(np.int64).ravel()
        check_label_shapes(truth, guess, shape=True, where=type(self).__name__)
        if truth.size and min(truth.min(), guess.min()) < 0:
            least = min(truth.min(), guess.min())
            raise ParamError(complaint("PCC", "labels", "classes of at least 0", least))
        count = int(max(truth.max(), guess.max())) + 1 if truth.size else 1
        table = np.zeros((count, count))
        np.add.at(table, (guess, truth), 1)
        return table


def _joined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The sum of two tables, the smaller one filled up with zeros."""
    size = max(len(one), len(other))
    padded = [np.pad(x, (0, size - len(x))) for x in (one, other)]
    return padded[0] + padded[1]


def _correlation(table: np.ndarray) -> float:
    """Pearson's correlation of rows and columns; NaN where one of them is constant."""
    total, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    spread = (rows * (total - rows)).sum() * (columns * (total - columns)).sum()
    if not spread:
        return float("nan")
    return float((table.diagonal() * total - rows * columns).sum() / math.sqrt(spread))
