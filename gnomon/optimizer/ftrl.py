"""FTRL: follow the regularized leader."""

from __future__ import annotations

from typing import Any

from gnomon.expr.node import Expr
from gnomon.ops.update import FtrlUpdate
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates


@register
class Ftrl(Optimizer):
    """Weights that `lamda1` keeps at 0 unless gradients insist (McMahan et al., 2013).

    Lazy where weight and gradient are row-sparse: rows without a gradient stay as they are, and a
    dense weight has none. A schedule starts from its own `base_lr`, whatever `learning_rate` is.
    At a rate of 0 nothing moves.
    """

    _zeros = 2  # z, n

    def __init__(
        self,
        lamda1: float = 0.01,
        learning_rate: float | None = 0.1,
        beta: float = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.lr = learning_rate  # a schedule keeps its own base_lr, unlike elsewhere
        self.lamda1 = lamda1
        self.beta = beta
        self.lazy_update = True

    def _is_lazy(self, weight: Any) -> bool:
        return super()._is_lazy(weight) and weight.stype == "row_sparse"

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        settings = {"lamda1": self.lamda1, "beta": self.beta}
        new = self._operator(FtrlUpdate, weight, grad, states, rates, **settings)
        return rates.moved(new, (weight, *states))
