"""What an estimator is given, checked, and metrics by default."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any, TypeVar

from gnomon.base import ParamError, complaint, shown
from gnomon.context import Context, cpu
from gnomon.gluon.contrib.estimator.events import EventHandler
from gnomon.gluon.data import DataLoader
from gnomon.gluon.loss import Loss, SoftmaxCrossEntropyLoss
from gnomon.gluon.trainer import Trainer
from gnomon.metric import Accuracy, CompositeEvalMetric, EvalMetric
from gnomon.metric import Loss as LossMetric

__all__ = ["Accuracy", "CompositeEvalMetric", "EvalMetric", "SoftmaxCrossEntropyLoss"]

T = TypeVar("T")


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
            raise ParamError(complaint("Estimator", argument, "metrics", shown(metric)))
    return found


def checked(argument: str, given: Any, kind: type[T], expected: str) -> T:
    """What is given; ParamError, with what was `expected`, where it is of another kind."""
    if not isinstance(given, kind):
        raise ParamError(complaint("Estimator", argument, expected, shown(given)))
    return given


def checked_context(given: Any) -> list[Context]:
    """The devices as a list, the processor by default; ParamError where something else is given."""
    expected = "a Context, or a list of them"
    return [checked("context", each, Context, expected) for each in listed(given) or [cpu()]]


def checked_handlers(given: Any) -> list[EventHandler]:
    """One handler, several or None, as a list; ParamError where something else is given."""
    expected = "an EventHandler, or a list of them"
    return [checked("event_handlers", each, EventHandler, expected) for each in listed(given)]


def check_metrics(handlers: list[EventHandler], known: list[EvalMetric]) -> None:
    """Raises ParamError where an attribute of a handler holds metrics other than these.

    Attributes that hold metrics have `metric` in their names.
    """
    named = [(h, name) for h in handlers for name in dir(h) if "metric" in name]
    for handler, name in named:
        for metric in listed(getattr(handler, name) or None):
            if not any(metric is each for each in known):
                where, got = type(handler).__name__, repr(metric)
                expected = "metrics of the estimator, as its train_metrics and val_metrics"
                raise ParamError(complaint(where, name, expected, got))


def checked_limit(argument: str, given: float | None) -> int | None:
    """How many epochs or batches; ParamError where it is no number of them."""
    if given is None:
        return None
    if not isinstance(given, Real) or given < 0 or given % 1:
        raise ParamError(complaint("Estimator.fit", argument, "a whole number", shown(given)))
    return int(given)


def checked_data(argument: str, given: Any) -> DataLoader:
    """The batches; ParamError where they are in no DataLoader."""
    return checked(argument, given, DataLoader, "a gluon.data.DataLoader")


def checked_trainer(given: Any) -> Trainer:
    """The trainer; ParamError where it is none."""
    return checked("trainer", given, Trainer, "a gluon.Trainer")


def usual_trainer(net: Any) -> Trainer:
    """A trainer where none is given, which is told in a warning."""
    warnings.warn(
        "Estimator: no trainer is given: SGD with a learning rate of 0.001 is used", stacklevel=4
    )
    return Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001})


def checked_processor(given: Any) -> Any:
    """What is done with batches; ParamError where it has not the methods for it."""
    if not all(callable(getattr(given, name, None)) for name in ("fit_batch", "evaluate_batch")):
        expected = "an object with fit_batch() and evaluate_batch()"
        raise ParamError(complaint("Estimator", "batch_processor", expected, shown(given)))
    return given


def checked_loss(argument: str, loss: Any) -> Loss:
    """The loss; ParamError where it is none of gluon's."""
    return checked(argument, loss, Loss, "a loss of gluon")


def metrics_of(loss: Any) -> list[EvalMetric]:
    """The metrics by default of a network that is trained with `loss`."""
    found: list[EvalMetric] = [LossMetric(loss.name.rstrip("1234567890"))]
    return [Accuracy(), *found] if isinstance(loss, SoftmaxCrossEntropyLoss) else found
