"""Optimizers that scale each element's step by a running measure of its gradients."""

from __future__ import annotations

import math
from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.ops.update import AdamUpdate, RmsPropUpdate, bounded
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates
from gnomon.optimizer.kept import zeros_like


@register
class Adam(Optimizer):
    """Steps by the running mean of gradients over the root of that of their squares.

    Kingma and Ba, arXiv:1412.6980. `lazy_update` matters for row-sparse gradients alone.
    """

    _counts_alone = True
    _zeros = 2

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        # The means start at 0: while they are young, the rate makes up for that.
        count = self._index_update_count[index]
        return lr * math.sqrt(1 - self.beta2**count) / (1 - self.beta1**count), wd

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        settings = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}
        return self._operator(AdamUpdate, weight, grad, states, rates, **settings)


@register
class AdaGrad(Optimizer):
    """Steps by the gradient over the root of the sum of all its squares so far.

    Duchi, Hazan and Singer, 2011. Decay is apart from the gradient.
    """

    _zeros = 1

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps
        self.lazy_update = True

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        grad = self._clipped(grad)
        history = states[0] + grad * grad
        step = grad / fn.sqrt(history + self.float_stable_eps) + weight * rates.wd
        return weight - step * rates.lr, history


@register
class RMSProp(Optimizer):
    """Steps by the gradient over the root of the running mean of its squares.

    `centered` subtracts the squared mean first and adds momentum `gamma2` (Graves,
    arXiv:1308.0850); otherwise as in Tieleman and Hinton's lecture. `clip_weights`, if
    above 0, bounds weights.
    """

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.epsilon = epsilon
        self.centered = centered
        self.clip_weights = clip_weights

    def create_state(self, index: Any, weight: Any) -> Any:
        return tuple(zeros_like(weight) for _ in range(3 if self.centered else 1))

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        if self.centered:
            return self._centred(weight, grad, states, rates)
        settings = {"gamma1": self.gamma1, "epsilon": self.epsilon}
        settings["clip_weights"] = self.clip_weights or -1.0
        return self._operator(RmsPropUpdate, weight, grad, states, rates, **settings)

    def _centred(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        grad = self._clipped(grad + rates.wd * weight)
        square = states[0] * self.gamma1 + grad * grad * (1 - self.gamma1)
        mean = states[1] * self.gamma1 + grad * (1 - self.gamma1)
        spread = fn.sqrt(square - mean * mean + self.epsilon)
        step = states[2] * self.gamma2 - rates.lr * grad / spread
        return bounded(weight + step, self.clip_weights or -1.0), square, mean, step
