"""Metrics from a user's own function on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from gnomon.base import complaint, shown
from gnomon.metric.base import EvalMetric, register

Feval = Callable[[numpy.ndarray, numpy.ndarray], Any]


@register
class CustomMetric(EvalMetric):
    """The mean of `feval(label, pred)`, which gives a number or a pair (sum, count).

    With `allow_extra_outputs` there may be more predictions than labels; the rest is ignored.
    """

    def __init__(
        self,
        feval: Feval,
        name: Any = None,
        allow_extra_outputs: bool = False,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if not callable(feval):
            expected = "a function of labels and predictions"
            raise TypeError(complaint("CustomMetric", "feval", expected, shown(feval)))
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            name = f"custom({name})" if "<" in name else name
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs
        super().__init__(
            name,
            output_names,
            label_names,
            feval=feval,
            allow_extra_outputs=allow_extra_outputs,
            has_global_stats=True,
        )

    def update(self, labels: Any, preds: Any) -> None:
        if not self._allow_extra_outputs:
            super().update(labels, preds)
            return
        for label, pred in zip(labels, preds, strict=False):
            self._add(*self.measure(label, pred))

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, int]:
        value = self._feval(label, pred)
        return value if isinstance(value, tuple) else (value, 1)

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError(f"CustomMetric: {self.name!r} holds a function and has no config")


def np(
    numpy_feval: Feval, name: str | None = None, allow_extra_outputs: bool = False
) -> CustomMetric:
    """A metric from a function of NumPy arrays (label, pred), named after the function.

    >>> np(lambda label, pred: abs(label - pred).max(), name="worst").name
    'worst'
    """
    if name is None and "<" not in getattr(numpy_feval, "__name__", "<"):
        name = numpy_feval.__name__
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
