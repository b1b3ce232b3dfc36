"""Nadam: Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates


@register
class Nadam(Optimizer):
    """Adam that looks one momentum ahead, with a momentum that grows (Dozat, 2016).

    State beside the arrays: `m_schedule`, the product of all momenta so far. As in MXNet it goes on
    with every weight that is updated, not with every step.
    """

    _zeros = 2

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def _momentum(self, count: int) -> float:
        return self.beta1 * (1 - 0.5 * 0.96 ** (count * self.schedule_decay))

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        """Rate, decay, the factors of gradient and mean in the step, and the mean square's."""
        count = self._index_update_count[index]
        now, ahead = self._momentum(count), self._momentum(count + 1)
        self.m_schedule *= now
        of_grad = (1 - now) / (1 - self.m_schedule)
        of_mean = ahead / (1 - self.m_schedule * ahead)
        return lr, wd, of_grad, of_mean, 1 / (1 - self.beta2**count)

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        of_grad, of_mean, of_square = rates.more
        grad = self._clipped(grad + rates.wd * weight)
        mean = states[0] * self.beta1 + grad * (1 - self.beta1)
        square = states[1] * self.beta2 + grad * grad * (1 - self.beta2)
        step = (grad * of_grad + mean * of_mean) / (fn.sqrt(square * of_square) + self.epsilon)
        return weight - rates.lr * step, mean, square
