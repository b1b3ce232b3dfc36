"""AdaDelta: steps whose size follows from running means alone."""

from __future__ import annotations

from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates


@register
class AdaDelta(Optimizer):
    """Steps by the gradient times the ratio of the running sizes of steps and of gradients.

    Zeiler, arXiv:1212.5701; `rho` is how much of the means stays. The learning rate has no part.
    """

    _zeros = 2

    def __init__(self, rho: float = 0.9, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        grad = self._clipped(grad)
        square = states[0] * self.rho + grad * grad * (1 - self.rho)
        step = fn.sqrt(states[1] + self.epsilon) / fn.sqrt(square + self.epsilon) * grad
        steps = states[1] * self.rho + step * step * (1 - self.rho)
        return weight - (step + rates.wd * weight), square, steps
