"""SGLD: stochastic gradient Langevin dynamics."""

from __future__ import annotations

import math
from typing import Any

from gnomon import random
from gnomon.optimizer.base import Optimizer, register


@register
class SGLD(Optimizer):
    """Half a step against the gradient, and noise of the step's variance.

    After long enough the weights are samples of the posterior (Welling and Teh, 2011).
    """

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_count(index)
        lr, wd = self._get_lr(index), self._get_wd(index)
        grad = grad * self.rescale_grad
        if self.clip_gradient and self.clip_gradient > 0:
            grad = grad.clip(-self.clip_gradient, self.clip_gradient)
        noise = random.normal(
            0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context
        )
        weight += -lr / 2 * (grad + wd * weight) + noise
