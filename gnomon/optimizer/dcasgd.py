"""DCASGD: stochastic gradient descent that makes up for gradients that come late."""

from __future__ import annotations

from typing import Any

from gnomon.expr.node import Expr
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates
from gnomon.optimizer.kept import zeros_like


@register
class DCASGD(Optimizer):
    """SGD whose gradient is corrected for what the weight has moved since the last update.

    Zheng et al., arXiv:1609.08326; `lamda` is the weight of the correction.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lamda = lamda

    def create_state(self, index: Any, weight: Any) -> Any:
        momentum = zeros_like(weight) if self.momentum else None
        return momentum, weight.copy()

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        *momenta, previous = states
        grad = self._clipped(grad)
        late = grad * grad * self.lamda * (weight - previous)
        step = -rates.lr * (grad + rates.wd * weight + late)
        if not momenta:
            return weight + step, weight
        momentum = momenta[0] * self.momentum + step
        return weight + momentum, momentum, weight
