"""`mx.optimizer.contrib`: optimizers of the second row."""

from __future__ import annotations

from typing import Any

from gnomon import ndarray as nd
from gnomon.base import GnomonError, complaint
from gnomon.expr import fn
from gnomon.expr.ext.reduce import broadcast_to, reduce
from gnomon.expr.node import Expr
from gnomon.optimizer.base import Optimizer, register
from gnomon.optimizer.fused import Exprs, Rates


@register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one sum of squares a row in place of one an element; without decay.

    The state of a weight of shape (n, m) has shape (n, 1).
    """

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps
        self.lazy_update = True

    def create_state(self, index: Any, weight: Any) -> Any:
        if len(weight.shape) != 2:
            expected = "a weight of two axes"
            raise GnomonError(complaint("GroupAdaGrad", "weight", expected, weight.shape))
        return nd.zeros((weight.shape[0], 1), weight.context, weight.dtype)

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        if self.wd:
            raise GnomonError(complaint("GroupAdaGrad", "wd", "0: it has no decay", self.wd))
        grad = self._clipped(grad)
        squares = grad * grad
        if weight.ndim == 2:  # rows of one element come as a vector of all
            squares = reduce(squares, "sum", 1, True) * (1 / max(1, weight.shape[1]))
        history = states[0] + squares
        root = fn.sqrt(history + self.float_stable_eps)
        return weight - rates.lr * grad / broadcast_to(root, weight.shape), history
