"""Metrics of predicted quantities: mean errors and correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.base import ParamError, ShapeError, complaint
from gnomon.metric.base import EvalMetric, NamedMetric, Value, check_label_shapes, register


class _MeanError(NamedMetric):
    """Base of metrics that average one error per batch, whatever the batch's size."""

    def error(self, difference: np.ndarray) -> float:
        """The error of one batch."""
        raise NotImplementedError(f"{type(self).__name__} must define error(difference)")

    def measure(self, label: np.ndarray, pred: np.ndarray) -> tuple[float, int]:
        # One axis means one quantity per row: (rows,) against (rows, 1) is no broadcast.
        label = label.reshape(-1, 1) if label.ndim == 1 else label
        pred = pred.reshape(-1, 1) if pred.ndim == 1 else pred
        try:
            difference = label - pred
        except ValueError as error:
            raise ShapeError(
                complaint(type(self).__name__, "preds", f"shape {label.shape}", pred.shape)
            ) from error
        return self.error(difference), 1


@register
class MAE(_MeanError):
    """Mean absolute error."""

    _name = "mae"

    def error(self, difference: np.ndarray) -> float:
        return float(np.abs(difference).mean())


@register
class MSE(_MeanError):
    """Mean squared error."""

    _name = "mse"

    def error(self, difference: np.ndarray) -> float:
        return float(np.square(difference).mean())


@register
class RMSE(_MeanError):
    """Mean over the batches of the root of each one's mean squared error."""

    _name = "rmse"

    def error(self, difference: np.ndarray) -> float:
        return math.sqrt(float(np.square(difference).mean()))


@register("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Correlation of labels and predictions: mean over batches (`macro`) or of all (`micro`).

    `micro` keeps count, means and central moments, and adds a batch to them in one pass.
    """

    def __init__(
        self,
        name: Any = "pearsonr",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:
        if average not in ("macro", "micro"):
            raise ParamError(
                complaint("PearsonCorrelation", "average", "'macro' or 'micro'", average)
            )
        self.average = average
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True)

    def reset(self) -> None:
        super().reset()
        self.reset_micro()

    def reset_micro(self) -> None:
        """Forget the moments of `micro`."""
        self._count = 0
        self._mean = np.zeros(2)
        self._moments = np.zeros((2, 2))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_conv" in state:  # a pickle of MXNet
            self._count, cross = state["_label_nums"], state["_conv"]
            self._mean = np.array([state["_mean_l"], state["_mean_p"]])
            self._moments = np.array([[state["_sse_l"], cross], [cross, state["_sse_p"]]])

    def measure(self, label: np.ndarray, pred: np.ndarray) -> tuple[float, int]:
        check_label_shapes(label, pred, shape=True, where=type(self).__name__)
        both = np.stack([label.ravel(), pred.ravel()]).astype(np.float64)
        if self.average == "macro":
            return float(np.corrcoef(both)[0, 1]), 1
        self._merge(both)
        return 0.0, 1

    def _merge(self, both: np.ndarray) -> None:
        count = both.shape[1]
        mean = both.mean(axis=1)
        centred = both - mean[:, None]
        shift = mean - self._mean
        total = self._count + count
        weight = self._count * count / total
        self._moments += centred @ centred.T + weight * np.outer(shift, shift)
        self._mean += shift * (count / total)
        self._count = total

    def get(self) -> Value:
        of_all = self.average == "micro" and self.num_inst
        return (self.name, self._of_all()) if of_all else super().get()

    def get_global(self) -> Value:
        of_all = self.average == "micro" and self.global_num_inst
        return (self.name, self._of_all()) if of_all else super().get_global()

    def _of_all(self) -> float:
        """The correlation of all that came since `reset`."""
        (label, cross), (_, pred) = self._moments
        return float(cross / math.sqrt(label * pred))
