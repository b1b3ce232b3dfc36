"""Stochastic gradient descent and its near relatives."""

from __future__ import annotations

from typing import Any

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.ops.update import NagMomUpdate, SgdMomUpdate, SgdUpdate, SignSgdUpdate, Update
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates
from gnomon.optimizer.kept import zeros_like


@register
class SGD(Optimizer):
    """`mom = momentum * mom - lr * (grad + wd * weight)`, `weight += mom`.

    `lazy_update` matters for row-sparse gradients alone.

    >>> import gnomon as mx
    >>> weight = mx.nd.array([1.0, 2.0])
    >>> sgd = SGD(learning_rate=0.5)
    >>> sgd.update(0, weight, mx.nd.array([1.0, 1.0]), sgd.create_state(0, weight))
    >>> weight.asnumpy().tolist()
    [0.5, 1.5]
    """

    aggregate_num = 4
    _with_momentum: type[Update] = SgdMomUpdate

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update

    def create_state(self, index: Any, weight: Any) -> Any:
        return zeros_like(weight) if self.momentum else None

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        if not states:
            return self._operator(SgdUpdate, weight, grad, states, rates)
        kind, momentum = self._with_momentum, self.momentum
        return self._operator(kind, weight, grad, states, rates, momentum=momentum)

    # (momentum, master copy): the order of MXNet's saved states.

    def _with_master(self, master: Any, state: Any) -> Any:
        return state, master

    def _master_and_state(self, state: Any) -> tuple[Any, Any]:
        return state[1], state[0]


@register
class ccSGD(SGD):
    """SGD under an old name."""


@register
class NAG(SGD):
    """SGD with Nesterov's momentum: the step looks one momentum ahead.

    `mom = momentum * mom - lr * g`, `weight += momentum * mom - lr * g` with
    `g = grad + wd * weight`.
    """

    aggregate_num = 0
    _with_momentum = NagMomUpdate

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        # without momentum its updates are SGD's, of row-sparse gradients too
        super().__init__(momentum=momentum, lazy_update=not momentum, **kwargs)


@register
class Signum(Optimizer):
    """The sign of the gradient, or of its running mean, as the step (Bernstein et al., 2018).

    `wd_lh` is a decay of the weight itself, apart from the gradient (Loshchilov and Hutter).
    """

    def __init__(
        self,
        learning_rate: float | None = 0.01,
        momentum: float = 0.9,
        wd_lh: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Any, weight: Any) -> Any:
        return zeros_like(weight) if self.momentum else None

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        if not states:
            return self._operator(SignSgdUpdate, weight, grad, states, rates)
        step = self._clipped(grad) + rates.wd * weight
        momentum = states[0] * self.momentum - step * (1 - self.momentum)
        kept = weight - rates.lr * weight * self.wd_lh
        return kept + rates.lr * fn.sign(momentum), momentum


@register
class Test(Optimizer):
    """Adds the rescaled gradient to the weight and keeps a copy of it; for tests of the store."""

    _zeros = 1

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        new = weight + grad
        return new, new
