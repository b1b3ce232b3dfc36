"""Optimizers that scale each element's step by a running measure of its gradients."""

from __future__ import annotations

import math
from typing import Any

from gnomon import ndarray as nd
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.sgd import zeros_like


@register
class Adam(Optimizer):
    """Steps by the running mean of gradients over the root of that of their squares.

    Kingma and Ba, arXiv:1412.6980. `lazy_update` matters for row-sparse gradients alone.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
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

    def create_state(self, index: Any, weight: Any) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_count(index)
        count = self._index_update_count[index]
        correction = math.sqrt(1 - self.beta2**count) / (1 - self.beta1**count)
        lr = self._get_lr(index) * correction
        mean, var = state
        grad = self._clipped(grad * self.rescale_grad + self._get_wd(index) * weight)
        mean[:] = self.beta1 * mean + (1 - self.beta1) * grad
        var[:] = self.beta2 * var + (1 - self.beta2) * nd.square(grad)
        weight[:] = weight - lr * mean / (nd.sqrt(var) + self.epsilon)


@register
class AdaGrad(Optimizer):
    """Steps by the gradient over the root of the sum of all its squares so far.

    Duchi, Hazan and Singer, 2011. Decay is apart from the gradient.
    """

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: Any) -> Any:
        return zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_count(index)
        lr, wd = self._get_lr(index), self._get_wd(index)
        grad = self._rescaled(grad)
        state[:] = state + nd.square(grad)
        weight[:] = weight - lr * (grad / nd.sqrt(state + self.float_stable_eps) + wd * weight)


@register
class RMSProp(Optimizer):
    """Steps by the gradient over the root of the running mean of its squares.

    `centered` subtracts the squared mean first and adds momentum `gamma2` (Graves,
    arXiv:1308.0850); otherwise as in Tieleman and Hinton's lecture. `clip_weights` bounds weights.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
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

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_count(index)
        lr = self._get_lr(index)
        grad = self._clipped(grad * self.rescale_grad + self._get_wd(index) * weight)
        square = state[0]
        square[:] = self.gamma1 * square + (1 - self.gamma1) * nd.square(grad)
        if self.centered:
            moved = weight + self._centred_step(lr, grad, state)
        else:
            moved = weight - lr * grad / nd.sqrt(square + self.epsilon)
        bound = self.clip_weights
        weight[:] = moved if bound is None else moved.clip(-bound, bound)

    def _centred_step(self, lr: float, grad: Any, state: Any) -> Any:
        square, mean, step = state
        mean[:] = self.gamma1 * mean + (1 - self.gamma1) * grad
        spread = nd.sqrt(square - nd.square(mean) + self.epsilon)
        step[:] = self.gamma2 * step - lr * grad / spread
        return step
