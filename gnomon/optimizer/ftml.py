"""FTML: follow the moving leader."""

from __future__ import annotations

import math
from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates


@register
class FTML(Optimizer):
    """The minimum of a moving mean of quadratic bounds of the loss (Zheng and Kwok, 2017).

    At a rate of 0 nothing moves.
    """

    _counts_alone = True
    _zeros = 3  # d, v, z

    def __init__(
        self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        count = self._index_update_count[index]
        of_root = (1 - self.beta1**count) / lr if lr else math.inf
        return lr, wd, of_root, 1 / (1 - self.beta2**count)

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        of_root, of_square = rates.more
        grad = self._clipped(grad + rates.wd * weight)
        square = states[1] * self.beta2 + grad * grad * (1 - self.beta2)
        d = (fn.sqrt(square * of_square) + self.epsilon) * of_root
        sigma = d - states[0] * self.beta1
        z = states[2] * self.beta1 + grad * (1 - self.beta1) - sigma * weight
        return rates.moved((-z / d, d, square, z), (weight, *states))
