"""Learning rates as functions of the number of updates.

State: `base_lr` is the rate last given, or to start from; an optimizer sets it once from its
own `learning_rate`. Schedulers are called with a number of updates that never goes down.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from math import cos, pi
from numbers import Integral, Real

from gnomon.base import ParamError, check_kind, complaint
from gnomon.compatibility.absent import finding
from gnomon.ground.arguments import CheckedArguments

__all__ = [
    "CosineScheduler",
    "FactorScheduler",
    "LRScheduler",
    "MultiFactorScheduler",
    "PolyScheduler",
]

__getattr__, __dir__ = finding(__name__, __all__)


class LRScheduler(CheckedArguments):
    """Base of schedulers: a warm-up from `warmup_begin_lr`, then what the subclass says.

    `warmup_mode` is `linear` (a straight line up to `base_lr`) or `constant`.
    """

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        self._require("warmup_steps", _counts(warmup_steps, 0), "an int from 0", warmup_steps)
        self._require(
            "warmup_begin_lr",
            warmup_begin_lr <= base_lr,
            f"at most base_lr={base_lr}",
            warmup_begin_lr,
        )
        modes = ("linear", "constant")
        self._require("warmup_mode", warmup_mode in modes, f"one of {modes}", warmup_mode)
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_final_lr = base_lr
        self.warmup_mode = warmup_mode

    def _require(self, argument: str, holds: bool, expected: str, got: object) -> None:
        if not holds:
            raise ParamError(complaint(type(self).__name__, argument, expected, got))

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate during the warm-up, `num_update` below `warmup_steps`."""
        self._require(
            "num_update", num_update < self.warmup_steps, f"below {self.warmup_steps}", num_update
        )
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = self.warmup_final_lr - self.warmup_begin_lr
        return self.warmup_begin_lr + rise * num_update / self.warmup_steps

    def after_warmup(self, num_update: int) -> float:
        """The rate after `num_update` updates, at least `warmup_steps` of them."""
        raise NotImplementedError(f"{type(self).__name__} must define after_warmup(num_update)")

    def __call__(self, num_update: int) -> float:
        """The rate for the update that makes the count `num_update`."""
        try:
            warming = num_update < self.warmup_steps
        except TypeError:  # asked for afterwards: this runs with every update
            check_kind(type(self).__name__, "num_update", num_update, Integral, "an int")
            raise
        return self.get_warmup_lr(num_update) if warming else self.after_warmup(num_update)


def _counts(value: object, least: int) -> bool:
    """Whether a value is a whole number from `least`."""
    return isinstance(value, Integral) and int(value) >= least


class FactorScheduler(LRScheduler):
    """The rate times `factor` after every `step` updates, never below `stop_factor_lr`.

    >>> schedule = FactorScheduler(step=10, factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (1, 10, 11, 21)]
    [1.0, 1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        step: float,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self._require("step", step >= 1, "1 or more", step)
        self._require("factor", factor <= 1, "at most 1", factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0

    def after_warmup(self, num_update: int) -> float:
        while num_update > self.count + self.step:
            self.count += self.step
            lower = self.base_lr * self.factor
            stops = lower < self.stop_factor_lr
            self.base_lr = self.stop_factor_lr if stops else lower
            what = "learning rate arrived at" if stops else "Change learning rate to"
            logging.info("Update[%d]: %s %0.5e", num_update, what, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """The rate times `factor` after each of the numbers of updates in `step`.

    >>> schedule = MultiFactorScheduler(step=[2, 5], factor=0.1, base_lr=1.0)
    >>> [round(schedule(n), 3) for n in (2, 3, 6)]
    [1.0, 0.1, 0.01]
    """

    def __init__(
        self,
        step: Sequence[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        valid = isinstance(step, (list, tuple)) and len(step) > 0
        valid = valid and all(isinstance(k, Real) and k >= 1 for k in step)
        rising = valid and all(a < b for a, b in itertools.pairwise(step))
        self._require("step", rising, "a rising list of ints from 1", step)
        self._require("factor", factor <= 1, "at most 1", factor)
        self.step = step
        self.factor = factor
        self.cur_step_ind = 0
        self.count = 0

    def after_warmup(self, num_update: int) -> float:
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _Decay(LRScheduler):
    """Base of schedulers that go from `base_lr` down to `final_lr` at `max_update`."""

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self._require("max_update", _counts(max_update, 1), "an int, 1 or more", max_update)
        self.max_update = max_update
        self.base_lr_orig = base_lr
        self.final_lr = final_lr
        self.max_steps = max_update - warmup_steps

    def remaining(self, progress: float) -> float:
        """How much of the way down is left, from 1 to 0, at `progress` from 0 to 1."""
        raise NotImplementedError(f"{type(self).__name__} must define remaining(progress)")

    def after_warmup(self, num_update: int) -> float:
        if num_update <= self.max_update:
            done = num_update - self.warmup_steps
            progress = done / self.max_steps if self.max_steps else 1.0
            height = self.base_lr_orig - self.final_lr
            self.base_lr = self.final_lr + height * self.remaining(progress)
        return self.base_lr


class PolyScheduler(_Decay):
    """The rate falls as `(1 - progress) ** pwr`.

    >>> PolyScheduler(max_update=10, base_lr=1.0)(5)
    0.25
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def remaining(self, progress: float) -> float:
        return (1 - progress) ** self.power


class CosineScheduler(_Decay):
    """The rate falls as the first half of a cosine wave.

    >>> round(CosineScheduler(max_update=10, base_lr=1.0)(5), 6)
    0.5
    """

    def remaining(self, progress: float) -> float:
        return (1 + cos(pi * progress)) / 2
