"""LeakyReLU: rectifiers that let something through below 0."""

from __future__ import annotations

from typing import Any

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.create import full
from gnomon.ops.infer import Free, Shape, Shapes
from gnomon.ops.op import Draws, Op, op
from gnomon.ops.param import param

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
KINDS = ("elu", "gelu", "leaky", "prelu", "rrelu", "selu")


@op("LeakyReLU", inputs=("data", "gamma"))
class LeakyReLU(Op):
    """The value where it is positive, else what `act_type` makes of it.

    `leaky`: times `slope`; `elu`: `slope * (exp(x) - 1)`; `selu`: elu with fixed numbers; `gelu`: x
    times the normal distribution's probability; `prelu`: times `gamma`, one a channel or one in
    all; `rrelu`: times a random slope in training, else their mean.
    """

    act_type: str = param("leaky", choices=KINDS, doc="Which function.")
    slope: float = param(0.25, doc="Slope below 0, for leaky and elu.")
    lower_bound: float = param(0.125, doc="Least slope of rrelu.")
    upper_bound: float = param(0.334, doc="Greatest slope of rrelu.")
    num_visible_outputs = 1

    def check(self) -> None:
        if self.lower_bound > self.upper_bound:
            raise self.wrong("upper_bound", f"at least lower_bound, {self.lower_bound}")

    def numbers(self) -> dict[str, float]:
        return {"slope": self.slope} if self.act_type in ("leaky", "elu") else {}

    @property
    def is_random(self) -> bool:
        return self.act_type == "rrelu"

    def arguments(self) -> tuple[str, ...]:
        return ("data", "gamma") if self.act_type == "prelu" else ("data",)

    def outputs(self) -> tuple[str, ...]:
        return ("output", "mask") if self.act_type == "rrelu" else ("output",)

    @property
    def num_heads(self) -> int:
        return 2  # MXNet's has a mask whatever `act_type` is

    def shapes(self, s: Shapes) -> None:
        s.same("data", *self.outputs())
        if self.act_type == "prelu" and s["gamma"] != (1,):
            data = s.need("data")
            s["gamma"] = (data[1] if len(data) > 1 else 1,)

    def free(self, data: Shape, gamma: Shape = ()) -> Free:
        return Free(data, gamma)

    def forward(
        self,
        data: Expr,
        gamma: Expr | None = None,
        *,
        train: bool = False,
        random: Draws | None = None,
    ) -> Expr | tuple[Expr, ...]:
        if self.act_type == "rrelu":
            slopes = self.slopes(data, train, random)
            return fn.where(data > 0, data, data * slopes), slopes
        return self.fixed(data, gamma)

    def fixed(self, data: Expr, gamma: Expr | None) -> Expr:
        """The kinds without chance."""
        if self.act_type == "gelu":
            return fn.gelu(data)
        if self.act_type == "selu":
            return fn.elu(data, SELU_ALPHA) * SELU_SCALE
        if self.act_type == "elu":
            return fn.elu(data, self.slope)
        if gamma is None:
            return fn.where(data > 0, data, data * self.slope)
        axis = 1 if data.ndim > 1 else 0
        size = data.shape[axis]
        each = gamma if gamma.shape == (size,) else ext.broadcast_to(gamma, (size,))
        return fn.where(data > 0, data, data * ext.broadcast_axis(each, data.shape, axis))

    def slopes(self, data: Expr, train: bool, random: Draws | None) -> Expr:
        """The slope of each element below 0."""
        if not train:
            return full(data.shape, (self.lower_bound + self.upper_bound) / 2, data.dtype)
        assert random is not None, "training is given a source of numbers"
        span = self.upper_bound - self.lower_bound
        return random.uniform(data.shape, data.dtype) * span + self.lower_bound

    def backward(
        self, out_grads: Any, inputs: Any, outputs: Any, **context: Any
    ) -> tuple[Expr | None, ...]:
        if self.act_type != "rrelu":
            return super().backward(out_grads, inputs, outputs, **context)
        g, data, slopes = out_grads[0], inputs[0], outputs[1]
        return (fn.where(data > 0, g, g * slopes),)
