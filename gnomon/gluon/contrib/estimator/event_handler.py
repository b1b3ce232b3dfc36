"""Handlers of an estimator's events: updates, metrics, validation, logging, the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon.base import ParamError, complaint, shown
from gnomon.gluon.contrib.estimator.checkpoint import CheckpointHandler, EarlyStoppingHandler
from gnomon.gluon.contrib.estimator.events import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    TrainBegin,
    TrainEnd,
)
from gnomon.metric import CompositeEvalMetric, EvalMetric, Loss  # noqa: F401  MXNet's has it

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Ends the training after a number of epochs or batches."""

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        self.max_epoch, self.max_batch = max_epoch, max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count, up to the estimator's limits."""
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = 0 in (self.max_epoch, self.max_batch)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether this was the last batch."""
        self.current_batch += 1
        self.stop_training = self.stop_training or self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether this was the last epoch."""
        self.current_epoch += 1
        self.stop_training = self.stop_training or self.current_epoch == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Counts every batch in metrics, which begin anew with every epoch."""

    def __init__(self, metrics: Any, priority: float = -1000) -> None:
        self.metrics, self.priority = _metrics("MetricHandler", metrics), priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin anew."""
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Count a batch; metrics of losses count its loss."""
        for metric in self.metrics:
            if isinstance(metric, Loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])
        return False


def _metrics(where: str, metrics: Any) -> list[EvalMetric]:
    listed = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    for metric in listed:
        if not isinstance(metric, EvalMetric):
            raise ParamError(complaint(where, "metrics", "metrics", shown(metric)))
    return listed


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Scores on other data now and then.

    Args:
        val_data: the data.
        eval_fn: the estimator's `evaluate`, or a function like it.
        epoch_period, batch_period: how often; None for never.
        event_handlers: handlers of the batches that are scored.
    """

    def __init__(
        self,
        val_data: Any,
        eval_fn: Callable[..., Any],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        priority: float = -1000,
        event_handlers: Any = None,
    ) -> None:
        self.val_data, self.eval_fn, self.event_handlers = val_data, eval_fn, event_handlers
        self.epoch_period, self.batch_period = epoch_period, batch_period
        self.current_batch = self.current_epoch = 0
        self.priority = priority

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count."""
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Score where the period says so."""
        self.current_batch += 1
        self._score(estimator, self.batch_period, self.current_batch)
        return False

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Score where the period says so."""
        self.current_epoch += 1
        self._score(estimator, self.epoch_period, self.current_epoch)
        return False

    def _score(self, estimator: Any, period: int | None, count: int) -> None:
        if period and count % period == 0:
            self.eval_fn(
                val_data=self.val_data,
                batch_axis=estimator.batch_axis,
                event_handlers=self.event_handlers,
            )


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Logs time and metrics by the estimator's logger.

    Args:
        log_interval: "epoch", or after how many batches too.
        metrics: what is logged.
    """

    def __init__(
        self, log_interval: Any = "epoch", metrics: Any = None, priority: float = np.inf
    ) -> None:
        if not (log_interval == "epoch" or (isinstance(log_interval, int) and log_interval > 0)):
            expected = "'epoch', or a number of batches"
            got = shown(log_interval)
            raise ParamError(complaint("LoggingHandler", "log_interval", expected, got))
        self.metrics = _metrics("LoggingHandler", metrics or [])
        self.log_interval, self.priority = log_interval, priority
        self._reset()

    def _reset(self) -> None:
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = 0.0

    def _shown(self) -> str:
        return ", ".join(f"{name}: {value:.4f}" for name, value in (m.get() for m in self.metrics))

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log what begins."""
        self._reset()
        self.train_start = time.time()
        trainer = estimator.trainer
        estimator.logger.info(
            "Training begin: using optimizer %s with current learning rate %.4f ",
            type(trainer.optimizer).__name__,
            trainer.learning_rate,
        )
        if estimator.max_epoch is not None:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log time and metrics of the training."""
        seconds = time.time() - self.train_start
        text = f"Train finished using total %ds with %d epochs. {self._shown()}"
        estimator.logger.info(text.rstrip(), seconds, self.current_epoch)

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count time; log the learning rate, where metrics of training are logged."""
        self.epoch_start = time.time()
        if any("training" in metric.name for metric in self.metrics):
            text = "[Epoch %d] Begin, current learning rate: %.4f"
            estimator.logger.info(text, self.current_epoch, estimator.trainer.learning_rate)
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Log time and metrics of the epoch."""
        parts = [f"Finished in {time.time() - self.epoch_start:.3f}s", self._shown()]
        estimator.logger.info("[Epoch %d] %s", self.current_epoch, ", ".join(filter(None, parts)))
        self.current_epoch += 1
        self.batch_index = 0
        return False

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count time."""
        self.batch_start = time.time()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Log time and metrics where the interval says so."""
        self.processed_samples += sum(len(x) for x in kwargs.get("label", ()))
        if self.log_interval != "epoch":
            self.log_interval_time += time.time() - self.batch_start
            if self.batch_index % self.log_interval == 0:
                place = self.current_epoch, self.batch_index, self.processed_samples
                text = f"[Epoch %d][Batch %d][Samples %d] time/interval: %.3fs {self._shown()}"
                estimator.logger.info(text.rstrip(), *place, self.log_interval_time)
                self.log_interval_time = 0.0
        self.batch_index += 1
        return False


class GradientUpdateHandler(BatchEnd):
    """Updates the parameters by the gradients of a batch."""

    def __init__(self, priority: float = -2000) -> None:
        self.priority = priority

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Update."""
        samples = sum(len(loss) for loss in kwargs["loss"])
        estimator.trainer.step(samples)
        return False
