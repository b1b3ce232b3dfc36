"""Functions to give to `fit`: speed, progress, metrics and checkpoints while it trains."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from gnomon.module.checkpoint import BatchEndParam, save_checkpoint

EpochCallback = Callable[..., None]


def do_checkpoint(prefix: str, period: int = 1) -> EpochCallback:
    """An `epoch_end_callback` that writes a checkpoint after every `period` epochs.

    The file after the first epoch is `prefix-0001.params`.
    """
    period = max(1, int(period))

    def write(iter_no: int, sym: Any, arg: dict[str, Any], aux: dict[str, Any]) -> None:
        if (iter_no + 1) % period == 0:
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return write


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> EpochCallback:
    """An `epoch_end_callback` that lets `mod` write a checkpoint after every `period` epochs."""
    period = max(1, int(period))

    def write(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return write


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[BatchEndParam], None]:
    """A `batch_end_callback` that logs the metric at every `period`-th batch."""

    def log(param: BatchEndParam) -> None:
        if param.nbatch % period or param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            param.eval_metric.reset_local()

    return log


class Speedometer:
    """A `batch_end_callback` that logs samples per second, and the metric, now and then.

    With `auto_reset` each line's metric covers the batches since the line before.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        self.batch_size = batch_size
        self.frequent = frequent
        self.auto_reset = auto_reset
        self.init = False  # whether `tic` says when the current stretch of batches began
        self.tic = 0.0
        self.last_count = 0

    def __call__(self, param: BatchEndParam) -> None:
        """Count a batch, and log after every `frequent` of an epoch."""
        count = param.nbatch
        if self.last_count > count:
            self.init = False
        self.last_count = count
        if self.init and count % self.frequent == 0:
            self._log(param)
        if not self.init or count % self.frequent == 0:
            self.init = True
            self.tic = time.time()

    def _log(self, param: BatchEndParam) -> None:
        elapsed = time.time() - self.tic
        speed = self.frequent * self.batch_size / elapsed if elapsed else math.inf
        if param.eval_metric is None:
            text = "Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec"
            logging.info(text, param.epoch, param.nbatch, speed)
            return
        pairs = param.eval_metric.get_name_value()
        start = param.nbatch - self.frequent if self.auto_reset else 0
        if self.auto_reset:
            param.eval_metric.reset_local()
        text = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(pairs)
        values = [item for pair in pairs for item in pair]
        logging.info(text, param.epoch, start, param.nbatch, speed, *values)


class ProgressBar:
    """A `batch_end_callback` that logs a bar of `length` characters for `total` batches."""

    def __init__(self, total: int, length: int = 80) -> None:
        self.bar_len = length
        self.total = total

    def __call__(self, param: BatchEndParam) -> None:
        """Log how much of the epoch is done."""
        logging.info("%s\r", progress(param.nbatch, self.total, self.bar_len))


def progress(count: int, total: int, length: int) -> str:
    """A bar that shows `count` of `total` in `length` characters.

    >>> progress(1, 4, 8)
    '[==------] 25%'
    """
    filled = round(length * count / total)
    return f"[{'=' * filled}{'-' * (length - filled)}] {math.ceil(100 * count / total)}%"


class LogValidationMetricsCallback:
    """An `eval_end_callback` that logs the metric after each scoring."""

    def __call__(self, param: BatchEndParam) -> None:
        """Log name and value of each metric."""
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
