"""`Estimator`: the loops of training and scoring, with handlers of what happens in them."""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Iterable
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.gluon.contrib.estimator import utils
from gnomon.gluon.contrib.estimator.batch_processor import BatchProcessor
from gnomon.gluon.contrib.estimator.event_handler import (  # noqa: F401  MXNet's has it
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)
from gnomon.gluon.data import DataLoader
from gnomon.gluon.trainer import Trainer  # noqa: F401  MXNet's has it
from gnomon.gluon.utils import split_and_load  # noqa: F401  MXNet's has it
from gnomon.ground.arguments import CheckedArguments
from gnomon.metric import EvalMetric

__all__ = ["Estimator"]


class Estimator(CheckedArguments):
    """Trains a network, with handlers of what happens; `logger` writes to the standard output.

    A handler whose `batch_end` is true ends the epoch, one whose `epoch_end` is true the training.

    Args:
        net: the network; parameters that are not initialized are by `initializer`.
        loss: a loss of gluon.
        train_metrics, val_metrics: metrics; accuracy and the loss by default for classes.
        initializer: where parameters begin.
        trainer: by default one with SGD and a learning rate of 0.001.
        context: a device, or a list of devices that share each batch.
        val_net, val_loss: another network and loss for scoring.
        batch_processor: does what is done with a batch.

    >>> import numpy as np
    >>> import gnomon as mx
    >>> x = np.random.default_rng(0).normal(size=(40, 2)).astype("float32")
    >>> data = mx.gluon.data.ArrayDataset(x, (x[:, 0] > 0).astype("float32"))
    >>> net = mx.gluon.nn.Dense(2)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    >>> accuracy = mx.metric.Accuracy()
    >>> loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    >>> estimator = Estimator(net, loss, train_metrics=accuracy, trainer=trainer)
    >>> estimator.logger.setLevel("WARNING")
    >>> estimator.fit(mx.gluon.data.DataLoader(data, batch_size=8), epochs=9)
    >>> estimator.train_metrics[0].get()[1] > 0.9
    True
    """

    def __init__(
        self,
        net: Any,
        loss: Any,
        train_metrics: Any = None,
        val_metrics: Any = None,
        initializer: Any = None,
        trainer: Any = None,
        context: Any = None,
        val_net: Any = None,
        val_loss: Any = None,
        batch_processor: Any = None,
    ) -> None:
        self.logger = logging.Logger("Estimator", logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.net, self.loss = net, utils.checked_loss("loss", loss)
        self.val_net = net if val_net is None else val_net
        self.val_loss = self.loss if val_loss is None else utils.checked_loss("val_loss", val_loss)
        self.context = utils.checked_context(context)
        self.batch_processor = utils.checked_processor(batch_processor or BatchProcessor())
        self._train_metrics = utils.checked_metrics("train_metrics", train_metrics)
        self._val_metrics = utils.checked_metrics("val_metrics", val_metrics)
        self._make_metrics()
        self._initialize(initializer)
        self.trainer = utils.checked_trainer(trainer or utils.usual_trainer(net))
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self.batch_axis = 0

    def _make_metrics(self) -> None:
        """Metrics by default, each with its loss, and named by what they measure."""
        if not self._train_metrics:
            self._train_metrics = utils.metrics_of(self.loss)
        if not self._val_metrics:
            self._val_metrics = [copy.deepcopy(metric) for metric in self._train_metrics]
        for what, own in (("training", self._train_metrics), ("validation", self._val_metrics)):
            for metric in own:
                metric.name = f"{what} {metric.name.removeprefix('training ')}"

    def _initialize(self, initializer: Any) -> None:
        params = self.net.collect_params()
        fresh = [p for p in params.values() if p._data is None and p._deferred_init is None]
        for param in fresh:
            param.initialize(ctx=self.context, default_init=initializer or "uniform")
        if not fresh and initializer is not None:
            self.net.initialize(init=initializer, ctx=self.context, force_reinit=True)

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """Metrics of training."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """Metrics of scoring."""
        return self._val_metrics

    def evaluate(self, val_data: Any, batch_axis: int = 0, event_handlers: Any = None) -> None:
        """Score on `val_data`, a DataLoader; the values are in `val_metrics`.

        Raises:
            ParamError: the data or the handlers are something else, or log other metrics.
        """
        utils.checked_data("val_data", val_data)
        handlers = utils.checked_handlers(event_handlers)
        utils.check_metrics(handlers, self._val_metrics)
        self._add(handlers, MetricHandler(self._val_metrics))
        self._add(handlers, LoggingHandler(metrics=self._val_metrics))
        handlers.sort(key=_priority)
        _call(handlers, "epoch_begin", self)
        for handler in handlers:
            if isinstance(handler, LoggingHandler):
                handler.current_epoch = 0
        for batch in val_data:
            _call(handlers, "batch_begin", self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            _call(handlers, "batch_end", self, batch=batch, pred=pred, label=label, loss=loss)
        _call(handlers, "epoch_end", self)

    def fit(
        self,
        train_data: DataLoader,
        val_data: Any = None,
        epochs: int | None = None,
        event_handlers: Any = None,
        batches: int | None = None,
        batch_axis: int = 0,
    ) -> None:
        """Train for a number of `epochs` or of `batches`, scoring `val_data` after each epoch.

        Raises:
            ParamError: both are given, or none; the data are no DataLoaders; a handler is none,
                or has metrics that are not the estimator's.
        """
        utils.checked_data("train_data", train_data)
        if (epochs is None) == (batches is None):
            got = f"epochs={epochs}, batches={batches}"
            raise ParamError(complaint("Estimator.fit", "epochs", "epochs or batches", got))
        self.max_epoch = utils.checked_limit("epochs", epochs)
        self.max_batch = utils.checked_limit("batches", batches)
        self.batch_axis = batch_axis
        handlers = self._prepared(val_data, event_handlers)
        _call(handlers, "train_begin", self)
        ended = any(getattr(handler, "stop_training", False) for handler in handlers)
        while not ended:
            _call(handlers, "epoch_begin", self)
            for batch in train_data:
                _call(handlers, "batch_begin", self, batch=batch)
                _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
                how = {"batch": batch, "pred": pred, "label": label, "loss": loss}
                if _call(handlers, "batch_end", self, **how):
                    break
            ended = _call(handlers, "epoch_end", self)
        _call(handlers, "train_end", self)

    def _prepared(self, val_data: Any, event_handlers: Any) -> list[Any]:
        """The given handlers, and those of the kinds that are missing, in order."""
        handlers = utils.checked_handlers(event_handlers)
        utils.check_metrics(handlers, [*self._train_metrics, *self._val_metrics])
        self._add(handlers, StoppingHandler(self.max_epoch, self.max_batch))
        self._add(handlers, GradientUpdateHandler())
        self._add(handlers, MetricHandler(self._train_metrics))
        if val_data is not None:
            self._add(
                handlers, ValidationHandler(utils.checked_data("val_data", val_data), self.evaluate)
            )
        self._add(handlers, LoggingHandler(metrics=self._train_metrics))
        return sorted(handlers, key=_priority)

    def _add(self, handlers: list[Any], handler: Any) -> None:
        if not any(isinstance(each, type(handler)) for each in handlers):
            handlers.append(handler)


def _call(handlers: Iterable[Any], event: str, estimator: Any, **how: Any) -> bool:
    """Tell all handlers of an event; whether one of them ends the training."""
    found = [getattr(each, event)(estimator, **how) for each in handlers if hasattr(each, event)]
    return any(found)


def _priority(handler: Any) -> float:
    return getattr(handler, "priority", 0)
