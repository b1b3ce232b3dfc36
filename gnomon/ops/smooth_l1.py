"""smooth_l1 through SimpleOp: two scalar operators and a registration, the worked example."""

from __future__ import annotations

from gnomon import shadow
from gnomon.base import DTypeError, complaint
from gnomon.expr.node import Expr
from gnomon.ops.simple import (
    EnvArguments,
    Input0,
    OutputGrad,
    SimpleOp,
    kInplaceOutIn,
    kNoInplace,
)


@shadow.op
def smooth_l1_loss(x: float, square: float) -> float:
    """Half the square of `sx` inside 1/s^2, |x| - 0.5/s^2 outside; `square` is s^2."""
    if x > 1.0 / square:
        return x - 0.5 / square
    if x < -1.0 / square:
        return -x - 0.5 / square
    return 0.5 * square * x * x


@shadow.op
def smooth_l1_gradient(x: float, square: float) -> float:
    """`s^2 x` inside 1/s^2, the sign of x outside."""
    if x > 1.0 / square:
        return 1.0
    if x < -1.0 / square:
        return -1.0
    return square * x


def forward(data: Expr, env: EnvArguments) -> Expr:
    """The loss of every element; DTypeError where they are no reals."""
    if data.dtype.kind != "f":
        expected = "floating-point numbers"
        raise DTypeError(complaint("smooth_l1", "data", expected, data.dtype.name))
    return smooth_l1_loss(data, env.scalar**2)


def backward(out_grad: OutputGrad, in0: Input0, env: EnvArguments) -> Expr:
    """The gradient of `data`."""
    gradient: Expr = out_grad.data * smooth_l1_gradient(in0.data, env.scalar**2)
    return gradient


(
    SimpleOp("smooth_l1")
    .set_function(shadow.kDevCPU, forward, kNoInplace)
    .set_gradient(shadow.kDevCPU, backward, kInplaceOutIn)
    .set_enable_scalar(True)
    .describe("A loss: half the square near 0, the absolute value far from it; `scalar` is sigma.")
)
