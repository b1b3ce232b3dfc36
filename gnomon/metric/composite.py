"""Several metrics as one, and `create`, which makes a metric of a name, a function or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from gnomon.base import Later, ParamError, check_kind, complaint, shown
from gnomon.metric.base import METRICS, EvalMetric, Value, register
from gnomon.metric.custom import CustomMetric

if TYPE_CHECKING:
    import json
else:
    json = Later("json")


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """A metric from its name, its configuration, a function of NumPy arrays, or a list of such.

    A function takes (label, pred). A configuration is what `get_config` gives, or that as JSON.

    >>> create("acc").name
    'accuracy'
    >>> create(create(["acc", "mse"]).get_config()).get()[0]
    ['accuracy', 'mse']
    >>> create(["mse", lambda label, pred: 0.0]).get()[0]
    ['mse', 'custom(<lambda>)']
    """
    if isinstance(metric, EvalMetric):
        return metric
    if isinstance(metric, (list, tuple)):
        children = [create(each, *args, **kwargs) for each in metric]
        return CompositeEvalMetric(children)
    if callable(metric) and not isinstance(metric, type):
        return CustomMetric(metric, *args, **kwargs)
    if not isinstance(metric, (str, dict)):
        expected = "a name, a configuration, a function, a list of them, or an EvalMetric"
        raise ParamError(complaint("metric.create", "metric", expected, shown(metric)))
    if isinstance(metric, dict) or metric.lstrip().startswith("{"):
        metric, kwargs = _configured(metric, kwargs)
    if args:
        return METRICS.get(metric)(*args, **kwargs)
    return METRICS.create(metric, **kwargs)


def _configured(text: str | dict[str, Any], given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments in a configuration; `given` go above its own.

    Raises:
        ParamError: it is none.
    """
    try:
        config = json.loads(text) if isinstance(text, str) else {**text}
        return str(config.pop("metric")), {**config, **given}
    except (ValueError, KeyError):
        expected = 'JSON {"metric": name, ...}, as get_config gives it'
        raise ParamError(complaint("metric.create", "metric", expected, shown(text))) from None


@register("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics updated together; their names and values come as lists.

    >>> CompositeEvalMetric(["acc", "ce"]).get()[0]
    ['accuracy', 'cross-entropy']
    """

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: Any = "composite",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        metrics = () if metrics is None else metrics
        check_kind("CompositeEvalMetric", "metrics", metrics, (list, tuple), "a list")
        self.metrics = [create(each) for each in metrics]
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def add(self, metric: Any) -> None:
        """Append a metric, or what `create` makes one of."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric at `index`."""
        check_kind("CompositeEvalMetric.get_metric", "index", index, Integral, "an int")
        if not -len(self.metrics) <= index < len(self.metrics):
            expected = f"an index below {len(self.metrics)}"
            raise ParamError(complaint("CompositeEvalMetric.get_metric", "index", expected, index))
        return self.metrics[index]

    def update_dict(self, labels: Mapping[str, Any], preds: Mapping[str, Any]) -> None:
        labels = _only(labels, self.label_names)
        preds = _only(preds, self.output_names)
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> Value:
        return _joined([metric.get_name_value() for metric in self.metrics])

    def get_global(self) -> Value:
        return _joined([metric.get_global_name_value() for metric in self.metrics])

    def get_config(self) -> dict[str, Any]:
        children = [metric.get_config() for metric in self.metrics]
        return {**super().get_config(), "metrics": children}


def _only(arrays: Mapping[str, Any], names: Sequence[str] | None) -> Mapping[str, Any]:
    if names is None:
        return arrays
    return {name: array for name, array in arrays.items() if name in names}


def _joined(pairs: Sequence[Sequence[tuple[str, float]]]) -> Value:
    flat = [pair for each in pairs for pair in each]
    return [name for name, _ in flat], [value for _, value in flat]
