"""Handlers that watch a metric: checkpoints, and an early end."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gnomon.base import MissingFileError, ParamError, complaint, shown
from gnomon.gluon.contrib.estimator.events import BatchEnd, EpochEnd, TrainBegin, TrainEnd
from gnomon.metric import EvalMetric

MODES = ("auto", "min", "max")
GROWING = ("acc", "f1", "mcc", "pearson", "pcc")


def _direction(where: str, monitor: Any, mode: str) -> tuple[Callable[[float, float], bool], float]:
    """How a better value compares with the best so far, and the worst value there is."""
    if not isinstance(monitor, EvalMetric):
        got = shown(monitor)
        raise ParamError(complaint(where, "monitor", "a metric of the estimator", got))
    if mode not in MODES:
        raise ParamError(complaint(where, "mode", f"one of {MODES}", repr(mode)))
    grows = any(word in str(monitor.name).lower() for word in GROWING)
    if mode == "max" or (mode == "auto" and grows):
        return operator.gt, -np.inf
    return operator.lt, np.inf


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Writes the parameters and the trainer's states now and then.

    Args:
        model_dir: the folder.
        model_prefix: begins the names of the files: `model-epoch0batch99.params` and `.states`;
            the network itself, where it is hybridized, is in `model-symbol.json`.
        monitor, save_best, mode: with `save_best` also write `model-best.params` whenever the
            metric `monitor` is better than ever; "min", "max", or "auto" by its name.
        verbose: above 0, log what is written.
        epoch_period, batch_period: how often; None for never.
        max_checkpoints: the oldest files above this number are deleted.
        resume_from_checkpoint: begin with the latest file in the folder, and count from there.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str],
        model_prefix: str = "model",
        monitor: Any = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ) -> None:
        self.model_dir, self.model_prefix = Path(model_dir), model_prefix
        self.model_dir.mkdir(parents=True, exist_ok=True)
        self.monitor, self.verbose, self.save_best = monitor, verbose, save_best
        self.epoch_period, self.batch_period = epoch_period, batch_period
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self.current_epoch = self.current_batch = 0
        self.trained_epoch = self.trained_batch = -1
        self._batches_before = 0
        self.saved_checkpoints: list[str] = []
        if save_best:
            self.monitor_op, self.best = _direction("CheckpointHandler", monitor, mode)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count, or go on from the latest files."""
        self.current_epoch = self.current_batch = self._batches_before = 0
        self.trained_epoch = self.trained_batch = -1
        self.saved_checkpoints = []
        if self.resume_from_checkpoint:
            self._resume(estimator)

    def _resume(self, estimator: Any) -> None:
        """Load the latest files; the name of those of an epoch's end says how many batches there
        were, that of others the last batch, counted from 0.
        """
        pattern = re.compile(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.params")
        matches = (pattern.fullmatch(path.name) for path in self.model_dir.iterdir())
        found = sorted(tuple(map(int, match.groups())) for match in matches if match)
        if found:
            self._load(estimator, *found[-1])
        self._batches_before = self.trained_batch + (estimator.max_epoch is None)
        if not found:
            text = "CheckpointHandler: No checkpoint found, training from scratch for %s"
            estimator.logger.info(text, _length(estimator))
            return
        if estimator.max_epoch is not None:
            estimator.max_epoch = max(estimator.max_epoch - self.trained_epoch - 1, 0)
        else:
            estimator.max_batch = max(estimator.max_batch - self._batches_before, 0)
        text = (
            "CheckpointHandler: Checkpoint resumed from epoch %d batch %d, "
            "continue to train for %s "
        )
        estimator.logger.warning(text, *found[-1], _length(estimator))

    def _load(self, estimator: Any, epoch: int, batch: int) -> None:
        """Take over parameters and states."""
        path = self.model_dir / f"{self.model_prefix}-epoch{epoch}batch{batch}"
        states = Path(f"{path}.states")
        if not states.is_file():
            raise MissingFileError(f"CheckpointHandler: {states} is missing beside its parameters")
        estimator.net.load_parameters(f"{path}.params")
        estimator.trainer.load_states(str(states))
        self.trained_epoch, self.trained_batch = epoch, batch

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Write files where the period says so."""
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save(estimator)
        self.current_batch += 1
        return False

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Write files where the period says so."""
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save(estimator)
        self.current_epoch += 1
        return False

    def _save_symbol(self, estimator: Any) -> None:
        path = self.model_dir / f"{self.model_prefix}-symbol.json"
        last = getattr(estimator.net, "_last", None)
        if last is not None:
            last.trace.symbol.save(str(path))
        else:
            text = "CheckpointHandler: %s is not written: the network is not hybridized"
            estimator.logger.info(text, path)

    def _save(self, estimator: Any) -> None:
        epoch = self.current_epoch + self.trained_epoch + 1
        name = f"{self.model_prefix}-epoch{epoch}batch{self.current_batch + self._batches_before}"
        self._tell(
            estimator,
            f"trained total {self.current_batch + 1} batches, "
            f"saving model at {self.model_dir} with prefix: {name}",
        )
        self._write(estimator, name)
        self.saved_checkpoints.append(name)
        if len(self.saved_checkpoints) > self.max_checkpoints:
            oldest = self.saved_checkpoints.pop(0)
            for path in self.model_dir.glob(f"{oldest}.*"):
                path.unlink()
        if self.save_best:
            self._save_if_best(estimator)

    def _save_if_best(self, estimator: Any) -> None:
        title, value = self.monitor.get()
        if np.isnan(value):
            return
        if not self.monitor_op(value, self.best):
            kept = f"{title} did not improve from {self.best:.5f}, skipping updating best model"
            self._tell(estimator, kept)
            return
        name = f"{self.model_prefix}-best"
        self._tell(
            estimator,
            f"{title} improved from {self.best:.5f} to {value:.5f}, "
            f"updating best model at {self.model_dir} with prefix: {name}",
        )
        self.best = value
        self._write(estimator, name)

    def _write(self, estimator: Any, name: str) -> None:
        path = self.model_dir / name
        estimator.net.save_parameters(f"{path}.params")
        estimator.trainer.save_states(f"{path}.states")

    def _tell(self, estimator: Any, what: str) -> None:
        if self.verbose > 0:
            estimator.logger.info("[Epoch %d] CheckpointHandler: %s", self.current_epoch, what)


def _length(estimator: Any) -> str:
    """How long an estimator trains."""
    epochs, batches = estimator.max_epoch, estimator.max_batch
    return f"{batches} batches" if epochs is None else f"{epochs} epochs"


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Ends the training when a metric no longer gets better.

    Args:
        monitor: the metric, one of the estimator.
        min_delta: less than this is not better.
        patience: how many epochs without a better value are allowed.
        mode: "min" or "max" is better; "auto" tells by the metric's name.
        baseline: a value that the metric has to reach.
    """

    def __init__(
        self,
        monitor: Any,
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
    ) -> None:
        self.monitor, self.baseline, self.patience = monitor, baseline, patience
        self.monitor_op, self._worst = _direction("EarlyStoppingHandler", monitor, mode)
        self.min_delta = abs(min_delta) * (1 if self.monitor_op is operator.gt else -1)
        self._begin()

    def _begin(self) -> None:
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        self.best = self._worst if self.baseline is None else self.baseline

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count."""
        self._begin()

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether to end."""
        value = self.monitor.get()[1]
        if not np.isnan(value):
            if self.monitor_op(value - self.min_delta, self.best):
                self.best, self.wait = value, 0
            else:
                self.wait += 1
                if self.wait >= self.patience:
                    self.stopped_epoch, self.stop_training = self.current_epoch, True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log that the training ended early."""
        if self.stop_training:
            estimator.logger.info(
                "[Epoch %d] EarlyStoppingHandler: early stopping due to %s not improving",
                self.stopped_epoch,
                self.monitor.get()[0],
            )
