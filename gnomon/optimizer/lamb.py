"""LAMB: Adam with a rate for each layer, for large batches."""

from __future__ import annotations

from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates
from gnomon.optimizer.norms import norm


@register
class LAMB(Optimizer):
    """Adam's step with decay, scaled to the size of the weight (You et al., arXiv:1904.00962).

    The size of the weight counts within `lower_bound` and `upper_bound`; `bias_correction=False`
    leaves out what makes up for means that start at 0.
    """

    aggregate_num = 45
    _counts_alone = True
    _zeros = 2

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        """Rate, decay, and the factors of mean and mean square."""
        if not self.bias_correction:
            return lr, wd, 1.0, 1.0
        count = self._index_update_count[index]
        return lr, wd, 1 / (1 - self.beta1**count), 1 / (1 - self.beta2**count)

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        of_mean, of_square = rates.more
        grad = self._clipped(grad)
        mean = states[0] * self.beta1 + grad * (1 - self.beta1)
        square = states[1] * self.beta2 + grad * grad * (1 - self.beta2)
        step = mean * of_mean / (fn.sqrt(square * of_square) + self.epsilon) + rates.wd * weight
        size, length = norm(weight), norm(step)
        if self.lower_bound is not None:
            size = fn.maximum(size, self.lower_bound)
        if self.upper_bound is not None:
            size = fn.minimum(size, self.upper_bound)
        sound = fn.logical_and(fn.gt(size, 0), fn.gt(length, 0))
        return weight - rates.lr * fn.where(sound, size / length, 1) * step, mean, square
