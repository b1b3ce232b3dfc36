"""Statistics of what goes through a network, for finding where it goes wrong.

State: *active* between a `tic` that starts a watched batch and its `toc`. While active, `queue`
gathers (batch number, name, statistic) of every output whose name fits the pattern.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from numbers import Integral
from typing import Any

from gnomon import ndarray as nd
from gnomon.base import DTypeError, ParamError, complaint, shown
from gnomon.ground.arguments import CheckedArguments
from gnomon.ndarray import NDArray  # noqa: F401  MXNet's has it

Record = tuple[int, str, str]


def root_mean_square(array: Any) -> Any:
    """The norm of an array divided by the root of its size, shape (1,)."""
    return nd.norm(array) / math.sqrt(array.size)


class Monitor(CheckedArguments):
    """Watches executors at every `interval`-th batch.

    Args:
        interval: batches from one that is watched to the next.
        stat_func: NDArray -> the NDArray(s) to show; default: norm / sqrt(size).
        pattern: regular expression that names must match from their start.
        sort: whether results come sorted by name, not by time.
        monitor_all: whether inputs of operators are watched as well as outputs.
    """

    def __init__(
        self,
        interval: int,
        stat_func: Callable[[Any], Any] | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ) -> None:
        if not isinstance(interval, Integral) or interval < 1:
            expected = "a number of batches, at least 1"
            raise ParamError(complaint("Monitor", "interval", expected, shown(interval)))
        self.interval = interval
        self.stat_func = stat_func or root_mean_square
        try:
            self.re_pattern = re.compile(pattern)
        except (re.error, TypeError) as error:
            got = f"{pattern!r} ({error})"
            raise ParamError(complaint("Monitor", "pattern", "a regular expression", got)) from None
        self.sort = sort
        self.monitor_all = monitor_all
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []
        self.step = 0
        self.exes: list[Any] = []

    def stat_helper(self, name: str, array: Any) -> None:
        """What executors call with each output."""
        if self.activated and self.re_pattern.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Watch an executor."""
        exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        if exe not in self.exes:
            self.exes.append(exe)

    def uninstall(self, exe: Any) -> None:
        """Watch an executor no more."""
        exe.set_monitor_callback(None)
        self.exes = [each for each in self.exes if each is not exe]

    def tic(self) -> None:
        """Begin a batch; it is watched if its turn has come."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[Record]:
        """End a batch; (number, name, statistic as text) of what was seen if it was watched."""
        if not self.activated:
            return []
        for exe in self.exes:
            for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
                self.stat_helper(name, array)
        self.activated = False
        seen = sorted(self.queue, key=lambda record: record[1]) if self.sort else self.queue
        self.queue = []
        return [(step, name, _text(statistic)) for step, name, statistic in seen]

    def toc_print(self) -> None:
        """End a batch and log what was seen."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %-30s %s", step, name, text)


def _text(statistic: Any) -> str:
    arrays = statistic if isinstance(statistic, list) else [statistic]
    for array in arrays:
        if not isinstance(array, nd.NDArray):
            expected, got = "an NDArray or a list of them", type(array).__name__
            raise DTypeError(complaint("Monitor", "stat_func", expected, got))
    values = (array.asnumpy() for array in arrays)
    # str, not a format: 0.33333334 where float32 means that, not its seventeen digits.
    return "".join(str(v.ravel()[0] if v.size == 1 else v) + "\t" for v in values)
