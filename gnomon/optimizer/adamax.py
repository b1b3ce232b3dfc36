"""Adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates


@register
class Adamax(Optimizer):
    """Steps by the running mean of gradients over the decaying maximum of their sizes.

    Kingma and Ba, arXiv:1412.6980, section 7.
    """

    _counts_alone = True
    _zeros = 2

    def __init__(
        self,
        learning_rate: float | None = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        return lr / (1 - self.beta1 ** self._index_update_count[index]), wd

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        grad = self._clipped(grad + rates.wd * weight)
        mean = states[0] * self.beta1 + grad * (1 - self.beta1)
        largest = fn.maximum(states[1] * self.beta2, fn.abs(grad))
        return weight - rates.lr * mean / largest, mean, largest
