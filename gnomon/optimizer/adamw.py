"""AdamW: Adam whose decay is apart from the gradient."""

from __future__ import annotations

from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.optimizer.adaptive import Adam
from gnomon.optimizer.base import register
from gnomon.optimizer.fused import Exprs, Rates


@register
class AdamW(Adam):
    """Adam, and a decay of `lr * wd * weight` that no mean sees (Loshchilov and Hutter, 2019).

    `correct_bias=False` leaves out what makes up for means that start at 0, as BERT's did.
    """

    def __init__(self, correct_bias: bool = True, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(epsilon=epsilon, **kwargs)
        self.correct_bias = correct_bias

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        corrected = super()._numbers(index, lr, wd)[0]
        return lr, wd, corrected if self.correct_bias else lr

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        grad = self._clipped(grad)
        mean = states[0] * self.beta1 + grad * (1 - self.beta1)
        square = states[1] * self.beta2 + grad * grad * (1 - self.beta2)
        step = rates.more[0] * mean / (fn.sqrt(square) + self.epsilon)
        return weight - step - rates.lr * rates.wd * weight, mean, square
