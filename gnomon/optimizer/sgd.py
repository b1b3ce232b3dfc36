"""Stochastic gradient descent and its near relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.optimizer.base import Optimizer, register


def zeros_like(weight: Any) -> Any:
    """Zeros of `weight`'s shape and dtype, on its device."""
    return nd.zeros(weight.shape, weight.context, dtype=weight.dtype)


@register
class SGD(Optimizer):
    """`mom = momentum * mom - lr * (grad + wd * weight)`, `weight += mom`; one kernel per weight.

    `lazy_update` matters for row-sparse gradients alone.

    >>> import gnomon as mx
    >>> weight = mx.nd.array([1.0, 2.0])
    >>> sgd = SGD(learning_rate=0.5)
    >>> sgd.update(0, weight, mx.nd.array([1.0, 1.0]), sgd.create_state(0, weight))
    >>> weight.asnumpy().tolist()
    [0.5, 1.5]
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update

    def create_state(self, index: Any, weight: Any) -> Any:
        return zeros_like(weight) if self.momentum else None

    def create_state_multi_precision(self, index: Any, weight: Any) -> Any:
        # (momentum, master copy): the order of MXNet's saved states.
        if not self._needs_master(weight):
            return self.create_state(index, weight)
        master = weight.astype(np.float32)
        return self.create_state(index, master), master

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if not self._needs_master(weight):
            self.update(index, weight, grad, state)
            return
        momentum, master = state
        self.update(index, master, grad.astype(np.float32), momentum)
        weight[:] = master.astype(weight.dtype)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_count(index)
        settings = self._settings(index)
        if state is None:
            nd.sgd_update(weight, grad, out=weight, **settings)
        else:
            nd.sgd_mom_update(weight, grad, state, out=weight, momentum=self.momentum, **settings)

    def _settings(self, index: Any) -> dict[str, float]:
        return {
            "lr": self._get_lr(index),
            "wd": self._get_wd(index),
            "rescale_grad": self.rescale_grad,
            "clip_gradient": -1.0 if self.clip_gradient is None else self.clip_gradient,
        }


@register
class ccSGD(SGD):
    """SGD under an old name."""


@register
class NAG(SGD):
    """SGD with Nesterov's momentum: the step looks one momentum ahead.

    `mom = momentum * mom - lr * g`, `weight += momentum * mom - lr * g` with
    `g = grad + wd * weight`.
    """

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(momentum=momentum, **kwargs)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if state is None:
            super().update(index, weight, grad, state)
            return
        self._update_count(index)
        lr, wd = self._get_lr(index), self._get_wd(index)
        step = lr * (self._rescaled(grad) + wd * weight)
        state[:] = self.momentum * state - step
        weight[:] = weight + self.momentum * state - step


@register
class Signum(Optimizer):
    """The sign of the gradient, or of its running mean, as the step (Bernstein et al., 2018).

    `wd_lh` is a decay of the weight itself, apart from the gradient (Loshchilov and Hutter).
    """

    def __init__(
        self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Any, weight: Any) -> Any:
        return zeros_like(weight) if self.momentum else None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_count(index)
        lr, wd = self._get_lr(index), self._get_wd(index)
        if state is None:
            weight[:] = (1 - lr * wd) * weight - lr * nd.sign(grad)
            return
        state[:] = self.momentum * state - (1 - self.momentum) * (
            self._rescaled(grad) + wd * weight
        )
        weight[:] = (1 - lr * self.wd_lh) * weight + lr * nd.sign(state)


@register
class Test(Optimizer):
    """Adds the rescaled gradient to the weight and keeps a copy of it; for tests of the store."""

    def create_state(self, index: Any, weight: Any) -> Any:
        return zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        weight[:] = weight + grad * self.rescale_grad
        state[:] = weight
