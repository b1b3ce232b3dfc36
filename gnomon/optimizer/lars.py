"""LARS: a rate for each layer from the sizes of its weight and gradient."""

from __future__ import annotations

from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.base import register
from gnomon.optimizer.fused import Exprs, Rates
from gnomon.optimizer.norms import norm
from gnomon.optimizer.sgd import SGD

_PLAIN = ("gamma", "beta", "bias")  # ends of names of parameters with the plain rate


@register
class LARS(SGD):
    """SGD whose rate is scaled by `eta * |weight| / (|grad| + wd * |weight| + eps)`.

    You, Gitman and Ginsburg, arXiv:1708.03888. Biases, gammas and betas keep the plain rate, and
    do not decay. With `momentum_correction` the momentum is scaled by what the schedule did to the
    rate since the weight's last update.
    """

    _decaying = ("_weight",)

    def __init__(
        self,
        momentum: float = 0.0,
        lazy_update: bool = True,
        eta: float = 0.001,
        eps: float = 0,
        momentum_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(momentum=momentum, lazy_update=lazy_update, **kwargs)
        self.eta = eta
        self.eps = eps
        self.momentum_correction = momentum_correction
        self._last_rates: dict[Any, float] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"_last_rates": {}} | state)  # a pickle of MXNet has none

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        """Rate, decay, momentum, and whether the rate is scaled."""
        rate, momentum = self.learning_rate, self.momentum
        last = self._last_rates.get(index)
        if self.momentum_correction and last:
            momentum *= rate / last
        self._last_rates[index] = rate
        return lr, wd, momentum, not str(self.idx2name.get(index, index)).endswith(_PLAIN)

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        momentum, scaled = rates.more
        size, slope = norm(weight), norm(grad)
        fit = self.eta * size / (slope + rates.wd * size + self.eps)
        sound = fn.logical_and(scaled, fn.logical_and(fn.gt(size, 0), fn.gt(slope, 0)))
        step = rates.lr * fn.where(sound, fit, 1) * (self._clipped(grad) + rates.wd * weight)
        if not states:
            return (weight - step,)
        gathered = states[0] * momentum - step
        return weight + gathered, gathered
