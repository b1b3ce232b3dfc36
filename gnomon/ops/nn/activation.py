"""Activation: one of five functions by name."""

from __future__ import annotations

from gnomon.expr import fn
from gnomon.expr.node import Expr
from gnomon.ops.op import Op, op
from gnomon.ops.param import param

FUNCTIONS = {
    "relu": fn.relu,
    "sigmoid": fn.sigmoid,
    "softrelu": fn.softplus,
    "softsign": fn.softsign,
    "tanh": fn.tanh,
}


@op("Activation")
class Activation(Op):
    """The function `act_type` of every element."""

    elementwise = True
    act_type: str = param(choices=FUNCTIONS, doc="Which function.")

    def forward(self, data: Expr) -> Expr:
        return FUNCTIONS[self.act_type](data)
