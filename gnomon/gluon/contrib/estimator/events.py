"""When handlers are called."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "TrainBegin",
    "TrainEnd",
]


class EventHandler:
    """Base of handlers; one with a smaller `priority` is called earlier."""


class TrainBegin(EventHandler):
    """Called before training."""

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Hook."""


class TrainEnd(EventHandler):
    """Called after training."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Hook."""


class EpochBegin(EventHandler):
    """Called before each epoch."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Hook."""


class EpochEnd(EventHandler):
    """Called after each epoch; true ends the training."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Hook."""
        return False


class BatchBegin(EventHandler):
    """Called before each batch, with `batch`."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Hook."""


class BatchEnd(EventHandler):
    """Called after each batch, with `batch`, `pred`, `label`, `loss`; true ends the epoch."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Hook."""
        return False
