"""`LogMetricsCallback`: metrics as curves in TensorBoard, while a module trains."""

from __future__ import annotations

from typing import Any

from gnomon.base import GnomonError
from gnomon.ground.lock import load_module

__all__ = ["LogMetricsCallback"]

# modules with a writer of event files, called as writer(folder), add_scalar(name, value, step)
_WRITERS = {
    "mxboard": "SummaryWriter",
    "torch.utils.tensorboard": "SummaryWriter",
    "tensorboardX": "SummaryWriter",
    "tensorboard.summary": "Writer",
}


class LogMetricsCallback:
    """A callback of batches that writes each metric's value for TensorBoard, a point an epoch.

    It writes into the folder `logging_dir` by the first of mxboard, torch, tensorboardX and
    tensorboard that is installed; `prefix` and a hyphen go before the names of metrics. Give it to
    `fit` as `batch_end_callback`, or `eval_end_callback`.

    Raises:
        GnomonError: none of those packages is installed.
    """

    def __init__(self, logging_dir: str, prefix: str | None = None) -> None:
        self.prefix = prefix
        self.summary_writer = _writer(logging_dir)

    def __call__(self, param: Any) -> None:
        """Write the values of the metric of `param` at its epoch."""
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            name = name if self.prefix is None else f"{self.prefix}-{name}"
            self.summary_writer.add_scalar(name, value, param.epoch)


def _writer(folder: str) -> Any:
    """A writer of event files in `folder`.

    Raises:
        GnomonError: no package that has one is installed.
    """
    for module, name in _WRITERS.items():
        try:
            kind = getattr(load_module(module), name)
        except ImportError:
            continue
        return kind(folder)
    names = ", ".join(sorted({module.partition(".")[0] for module in _WRITERS}))
    raise GnomonError(f"LogMetricsCallback: none of {names} is installed; one writes the files")
