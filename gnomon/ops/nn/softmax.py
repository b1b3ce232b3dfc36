"""softmax, log_softmax and softmin along an axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.dtype import DType, int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ground.record import cached_property
from gnomon.ops.create import FLOATS
from gnomon.ops.infer import Free, Shape, Shapes, Types, normal_axis
from gnomon.ops.op import Op, made_of, op
from gnomon.ops.param import param
from gnomon.ops.reduce import Axes, total

LOWEST = float("-inf")


def spread(small: Expr, like: Expr) -> Expr:
    """`small`, whose joined axes have size 1, stretched to the shape of `like`."""
    return ext.broadcast_to(small, like.shape)


def shifted(x: Expr, axes: Axes) -> Expr:
    """`x` less its maximum over `axes`, so that exp cannot overflow."""
    return x - spread(ext.reduce(x, "max", axes, keepdims=True), x)


def softmax(x: Expr, axes: Axes) -> Expr:
    """exp(x), divided by its sum over `axes`."""
    powers = fn.exp(shifted(x, axes))
    return powers / spread(total(powers, axes), x)


def softmax_gradient(y: Expr, g: Expr, axes: Axes) -> Expr:
    """The gradient of `softmax` from its output."""
    return y * (g - spread(total(g * y, axes), y))


def log_softmax(x: Expr, axes: Axes) -> Expr:
    """The logarithm of `softmax`."""
    away = shifted(x, axes)
    return away - spread(fn.log(total(fn.exp(away), axes)), x)


class Softmax(Op):
    """What the three share: axis, temperature, dtype, and lengths beyond which all is 0."""

    axis: int = param(-1, doc="The axis.")
    temperature: float | None = param(None, doc="What `data` is divided by.")
    dtype: DType | None = param(None, choices=FLOATS, doc="Dtype of the output; of `data` if None.")
    use_length: bool | None = param(False, doc="There is an input `length`.")
    sign = 1

    def check(self) -> None:
        if self.temperature == 0:
            raise ParamError(complaint(self.name, "temperature", "not 0", 0))

    def arguments(self) -> tuple[str, ...]:
        return ("data", "length") if self.use_length else ("data",)

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        if self.use_length:
            data = s.need("data")
            axis = s.axis("data", self.axis)
            s["length"] = (*data[:axis], *data[axis + 1 :])

    def types(self, t: Types) -> None:
        t["output"] = self.dtype or t["data"]
        t["data"] = None if self.dtype else t["output"]

    @cached_property
    def factor(self) -> float:
        """What `data` is multiplied by."""
        return self.sign / (self.temperature or 1.0)

    def numbers(self) -> dict[str, float]:
        if self.temperature is None:
            return {}
        return {"temperature": self.temperature, "factor": self.factor}

    def with_numbers(self, numbers: Mapping[str, float]) -> Op:
        return made_of(super().with_numbers({"temperature": 1.0}), numbers)

    def axes(self, x: Expr) -> Axes:
        """The axis in which sums are 1; none of a scalar."""
        return (normal_axis(self.name, self.axis, x.ndim),) if x.ndim else ()

    def logits(self, data: Expr, length: Expr | None) -> Expr:
        """`data` in the output's dtype, scaled, and -inf beyond `length`."""
        x = cast(data, self.dtype or data.dtype)
        x = x * self.factor if self.factor != 1 else x
        return x if length is None else fn.where(self.inside(x, length), x, LOWEST)

    def inside(self, x: Expr, length: Expr) -> Expr:
        """1 at the first `length` elements along the axis, else 0, in the dtype of `x`."""
        axis = normal_axis(self.name, self.axis, x.ndim)
        place = ext.iota(x.shape, axis, int64)
        ends = ext.reshape(cast(length, int64), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        return cast(fn.lt(place, ext.broadcast_to(ends, x.shape)), x.dtype)

    def free(self, data: Shape, length: Shape | None = None) -> Free | None:
        return Free(data) if length is None and self.axis in (-1, len(data) - 1) else None

    def forward(self, data: Expr, length: Expr | None = None) -> Expr:
        axes = self.axes(data)
        x = self.logits(data, length)
        y = self.values(x, axes)
        return y if length is None else fn.where(self.inside(x, length), y, 0)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr | None, ...]:
        g, y, data = out_grads[0], outputs[0], inputs[0]
        axes = self.axes(y)
        if len(inputs) > 1:
            g = fn.where(self.inside(y, inputs[1]), g, 0)
        found = self.gradient(y, g, axes)
        if len(inputs) > 1:
            found = fn.where(self.inside(y, inputs[1]), found, 0)
        found = found * self.factor if self.factor != 1 else found
        return (cast(found, data.dtype), None)[: len(inputs)]

    def values(self, x: Expr, axes: Axes) -> Expr:
        """Hook: the output for scaled data."""
        return softmax(x, axes)

    def gradient(self, y: Expr, g: Expr, axes: Axes) -> Expr:
        """Hook: the gradient of scaled data from the output."""
        return softmax_gradient(y, g, axes)


@op("softmax", inputs=("data", "length"))
class SoftmaxPlain(Softmax):
    """exp(x), divided by its sum along an axis."""


@op("softmin")
class Softmin(Softmax):
    """exp(-x), divided by its sum along an axis."""

    sign = -1


@op("log_softmax")
class LogSoftmax(Softmax):
    """The logarithm of softmax along an axis."""

    def values(self, x: Expr, axes: Axes) -> Expr:
        return log_softmax(x, axes)

    def gradient(self, y: Expr, g: Expr, axes: Axes) -> Expr:
        return g - fn.exp(y) * spread(total(g, axes), y)


@op("SoftmaxActivation")
class SoftmaxActivation(Op):
    """Softmax along axis 1 (`channel`), or along the last (`instance`)."""

    mode: str = param("instance", choices=("channel", "instance"), doc="Which axis.")

    def axes(self, ndim: int) -> Axes:
        """The axis along which there is one sum; none of an array without axes."""
        return (1,) if self.mode == "channel" else tuple(range(ndim))[-1:]

    def forward(self, data: Expr) -> Expr:
        return softmax(data, self.axes(data.ndim))

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr]:
        y = outputs[0]
        return (softmax_gradient(y, out_grads[0], self.axes(y.ndim)),)


@op("softmax_cross_entropy", inputs=("data", "label"))
class SoftmaxCrossEntropy(Op):
    """The sum over rows of -log softmax at the label's place."""

    def shapes(self, s: Shapes) -> None:
        s["label"] = s.rank("data", 2)[:1]
        s["output"] = (1,)

    def types(self, t: Types) -> None:
        t.same("data", "output")
        if t["label"] is None:
            t["label"] = t["data"]

    def forward(self, data: Expr, label: Expr) -> Expr:
        chosen = ext.pick(log_softmax(data, (1,)), cast(label, int64))
        return -ext.reshape(total(chosen, (0,)), (1,))

    def gradient(self, grad: Expr, data: Expr, label: Expr) -> dict[str, Expr]:
        rows, classes = data.shape
        place = fn.maximum(fn.minimum(cast(label, int64), classes - 1), 0)
        place = ext.broadcast_to(ext.reshape(place, (rows, 1)), data.shape)
        hit = cast(fn.eq(ext.iota(data.shape, 1, int64), place), data.dtype)
        return {"data": (softmax(data, (1,)) - hit) * ext.broadcast_to(grad, data.shape)}
