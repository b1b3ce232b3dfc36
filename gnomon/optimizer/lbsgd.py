"""LBSGD: stochastic gradient descent for batches gathered over several updates."""

from __future__ import annotations

import logging
import math
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.base import register
from gnomon.optimizer.fused import Exprs, Rates
from gnomon.optimizer.kept import zeros_like
from gnomon.optimizer.norms import square_sum
from gnomon.optimizer.sgd import SGD


@register
class LBSGD(SGD):
    """Gathers `batch_scale` gradients, then updates by their mean at a rate that warms up.

    `warmup_strategy` raises the rate to `batch_scale` times over `warmup_epochs`: `linear`,
    `power2` or `sqrt`; `lars` scales it by the sizes of weight and gradient in its place, any
    other word not at all (You, Gitman and Ginsburg, arXiv:1708.03888).

    State of a weight: its momentum, if there is one, as MXNet's; and, with a `batch_scale` other
    than 1, the sum of its gradients.
    """

    aggregate_num = 0

    def __init__(
        self,
        momentum: float = 0.0,
        multi_precision: bool = False,
        warmup_strategy: str = "linear",
        warmup_epochs: float = 5,
        batch_scale: float = 1,
        updates_per_epoch: float = 32,
        begin_epoch: float = 0,
        num_epochs: float = 60,
        **kwargs: Any,
    ) -> None:
        super().__init__(momentum=momentum, multi_precision=multi_precision, **kwargs)
        self.lazy_update = False
        self.warmup_strategy = warmup_strategy
        self.warmup_epochs = warmup_epochs
        self.batch_scale = batch_scale
        self.updates_per_epoch = updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        self.adaptive = warmup_strategy == "lars"
        self.lbmult = self.admult = 1  # these three are not used: MXNet looks for them in files
        self.cumgrads: dict[Any, Any] = {}
        logging.info("LBSGD: large-batch SGD")
        logging.info(
            "Batch_scale=%f, warmup_epochs=%d, warmup_strategy=%s, updates_per_epoch=%d",
            batch_scale,
            warmup_epochs,
            warmup_strategy,
            updates_per_epoch,
        )

    def create_state(self, index: Any, weight: Any) -> Any:
        momentum = super().create_state(index, weight)
        if not self._gathers:
            return momentum
        gathered = zeros_like(weight)
        return (gathered,) if momentum is None else (momentum, gathered)

    @property
    def _gathers(self) -> bool:
        """Whether an update takes several gradients."""
        return self.batch_scale != 1

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        """Rate, decay, whether this gradient completes a batch, and 1 / rescale_grad^2."""
        count = self.init_updates + self._index_update_count[index] - self.begin_num_update
        unscaled = self.rescale_grad**-2 if self.rescale_grad else 1.0
        return lr * self._warmth(), wd, count % self.batch_scale == 0, unscaled

    def _warmth(self) -> float:
        """How many times the plain rate counts by now."""
        updates, last = self.init_updates + self.num_update, self.warmup_epochs
        last *= self.updates_per_epoch
        if self.adaptive:
            return 1.0
        if updates >= last:
            return self.batch_scale
        part = updates / last
        risen = {"linear": part, "power2": part * part, "sqrt": math.sqrt(part)}
        return 1 + (self.batch_scale - 1) * risen.get(self.warmup_strategy, 0.0)

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        if len(states) != bool(self.momentum) + self._gathers:
            expected = "a momentum, and the sum of gradients (which MXNet's files lack), if wanted"
            raise ParamError(complaint("LBSGD", "states", expected, f"{len(states)} arrays"))
        complete, unscaled = rates.more
        momenta, sums = list(states[: bool(self.momentum)]), states[bool(self.momentum) :]
        total = sums[0] + grad if sums else grad
        mean = total * (1 / self.batch_scale)
        lr = rates.lr
        if self.adaptive:
            size = square_sum(weight)
            slope = square_sum(mean) * unscaled  # of gradients as they came
            lr = lr * fn.clip(fn.sqrt(size / (slope + rates.wd * size + 1e-18)), 0.01, 100.0)
        step = -lr * (self._clipped(mean) + rates.wd * weight)
        if momenta:
            step = momenta[0] * self.momentum + step
        if not sums:
            return weight + step, *([step] if momenta else [])
        momenta = [fn.where(complete, step, momentum) for momentum in momenta]
        return fn.where(complete, weight + step, weight), *momenta, fn.where(complete, 0, total)
