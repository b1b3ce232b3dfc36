"""What an estimator is given: losses and metrics, checked, and metrics by default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.gluon.loss import Loss, SoftmaxCrossEntropyLoss
from gnomon.metric import Accuracy, CompositeEvalMetric, EvalMetric
from gnomon.metric import Loss as LossMetric

__all__ = ["Accuracy", "CompositeEvalMetric", "EvalMetric", "SoftmaxCrossEntropyLoss"]


def listed(given: Any) -> list[Any]:
    """Several things, one, or None, as a list."""
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def checked_metrics(argument: str, given: Any) -> list[EvalMetric]:
    """Metrics as a list, those of composites too.

    Raises:
        ParamError: something else is among them.
    """

    def flat(value: Any) -> Iterator[Any]:
        if isinstance(value, CompositeEvalMetric):
            for each in value.metrics:
                yield from flat(each)
        else:
            yield value

    found = [metric for each in listed(given) for metric in flat(each)]
    for metric in found:
        if not isinstance(metric, EvalMetric):
            raise ParamError(complaint("Estimator", argument, "metrics", repr(metric)))
    return found


def checked_loss(argument: str, loss: Any) -> Any:
    """The loss; ParamError where it is none of gluon's."""
    if not isinstance(loss, Loss):
        raise ParamError(complaint("Estimator", argument, "a loss of gluon", repr(loss)))
    return loss


def metrics_of(loss: Any) -> list[EvalMetric]:
    """The metrics by default of a network that is trained with `loss`."""
    found: list[EvalMetric] = [LossMetric(loss.name.rstrip("1234567890"))]
    return [Accuracy(), *found] if isinstance(loss, SoftmaxCrossEntropyLoss) else found
