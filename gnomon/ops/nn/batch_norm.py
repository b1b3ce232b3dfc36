"""BatchNorm: each channel with mean 0 and variance 1, then times `gamma` plus `beta`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.dtype import DType, float32
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.infer import Free, Shape, Shapes, Types, normal_axis, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.reduce import Axes, mean_and_variance, total

INPUTS = ("data", "gamma", "beta", "moving_mean", "moving_var")
STATES = ("moving_mean", "moving_var")


@op(
    "BatchNorm",
    inputs=INPUTS,
    aux=STATES,
    outputs=("output", "mean", "var"),
    aliases=("BatchNorm_v1",),
)
class BatchNorm(Op):
    """`gamma * (data - mean) / sqrt(variance + eps) + beta` for each channel.

    Mean and variance are the batch's in training, else the moving ones. The batch's go into the
    moving ones in each backward pass that reaches the operator, so not where nothing that it
    depends on wants a gradient. The output `var` holds `1 / sqrt(variance + eps)`.
    """

    eps: float = param(0.0010000000474974513, low=0, doc="Added to the variance.")
    momentum: float = param(0.9, doc="How much of the moving averages stays.")
    fix_gamma: bool = param(True, doc="Take gamma as 1 and give it no gradient.")
    use_global_stats: bool = param(False, doc="Use the moving averages in training, too.")
    output_mean_var: bool = param(False, doc="Show the outputs `mean` and `var`.")
    axis: int = param(1, doc="The axis of the channels.")
    cudnn_off: bool = param(False, doc="No meaning here.")
    min_calib_range: float | None = param(None, doc="No meaning here.")
    max_calib_range: float | None = param(None, doc="No meaning here.")

    @property
    def num_visible_outputs(self) -> int:
        return 3 if self.output_mean_var else 1

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        channels = (data[s.axis("data", self.axis)],)
        for name in (*INPUTS[1:], "mean", "var"):
            s[name] = channels

    def types(self, t: Types) -> None:
        t.same("data", "output")
        for name in (*INPUTS[1:], "mean", "var"):
            t[name] = statistics_dtype(t.need("data"))

    def free(self, data: Shape, *others: Shape) -> Free:
        axis = normal_axis(self.name, self.axis, len(data))
        return Free((*data[:axis], *data[axis + 1 :]), data[axis : axis + 1])

    def batch(self, train: bool) -> bool:
        """Whether mean and variance are those of the batch."""
        return train and not self.use_global_stats

    def forward(
        self, data: Expr, gamma: Expr, beta: Expr, *states: Expr, train: bool = False
    ) -> tuple[Expr, Expr, Expr]:
        x, axes = self.wide(data), self.axes(data)
        if self.batch(train):
            center, variance = (ext.reshape(v, beta.shape) for v in mean_and_variance(x, axes))
        else:
            center, variance = fn.identity(states[0]), states[1]
        spread = fn.rsqrt(variance + self.eps)
        y = (x - self.each(center, x)) * self.each(spread, x)
        y = y if self.fix_gamma else y * self.each(gamma, x)
        return cast(y + self.each(beta, x), data.dtype), center, spread

    def updates_backward(
        self, inputs: Any, aux: Any, outputs: Any, train: bool = True
    ) -> dict[int, Expr]:
        if not self.batch(train):
            return {}
        _, center, spread = outputs
        variance = 1 / (spread * spread) - self.eps
        kept, new = self.momentum, 1 - self.momentum
        return {0: aux[0] * kept + center * new, 1: aux[1] * kept + variance * new}

    def backward(
        self, out_grads: Any, inputs: Any, outputs: Any, *, train: bool = True
    ) -> tuple[Expr | None, ...]:
        # written out: two sums serve all three gradients, where differentiation gives five
        data, gamma, _, *_ = inputs
        x, g, axes = self.wide(data), self.wide(out_grads[0]), self.axes(data)
        center, spread = (self.each(v, x) for v in outputs[1:])
        normal = (x - center) * spread
        dbeta, dgamma = self.channels(total(g, axes)), self.channels(total(g * normal, axes))
        dx = g
        if self.batch(train):
            count = times([x.shape[a] for a in axes])
            dx = g - (self.each(dbeta, x) + normal * self.each(dgamma, x)) / max(count, 1)
        dx = dx * spread if self.fix_gamma else dx * spread * self.each(gamma, x)
        return cast(dx, data.dtype), None if self.fix_gamma else dgamma, dbeta

    def axes(self, data: Expr) -> Axes:
        """All axes but the channels'."""
        channel = normal_axis(self.name, self.axis, data.ndim)
        return tuple(a for a in range(data.ndim) if a != channel)

    def each(self, values: Expr, x: Expr) -> Expr:
        """One value a channel, at every element."""
        return ext.broadcast_axis(values, x.shape, normal_axis(self.name, self.axis, x.ndim))

    @staticmethod
    def channels(sums: Expr) -> Expr:
        """Sums over all other axes, as one value a channel."""
        return ext.reshape(sums, (times(sums.shape),))

    @staticmethod
    def wide(data: Expr) -> Expr:
        """`data` in the dtype of its statistics."""
        return cast(data, statistics_dtype(data.dtype))


def statistics_dtype(dtype: DType) -> DType:
    """float32 for half floats, else the dtype itself."""
    return float32 if dtype.size < 4 else dtype


@op("_contrib_BatchNormWithReLU", inputs=INPUTS, aux=STATES, outputs=("output", "mean", "var"))
class BatchNormWithReLU(BatchNorm):
    """`BatchNorm`, of whose result what is negative is 0."""

    cases = (case((4, 3, 2), (3,), (3,), (3,), (3,), low=0.2, fix_gamma=False),)
    free = BatchNorm.free

    def forward(
        self, data: Expr, gamma: Expr, beta: Expr, *states: Expr, train: bool = False
    ) -> tuple[Expr, Expr, Expr]:
        y, center, spread = super().forward(data, gamma, beta, *states, train=train)
        return fn.relu(y), center, spread

    def backward(
        self, out_grads: Any, inputs: Any, outputs: Any, *, train: bool = True
    ) -> tuple[Expr | None, ...]:
        passed = fn.where(fn.gt(outputs[0], 0), out_grads[0], 0)
        return super().backward((passed, *out_grads[1:]), inputs, outputs, train=train)

    def reference(self, data: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
        normal = (data - mean[:, None]) / np.sqrt(var[:, None] + self.eps)
        return np.maximum(normal * gamma[:, None] + beta[:, None], 0)
