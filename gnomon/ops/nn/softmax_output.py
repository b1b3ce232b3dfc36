"""SoftmaxOutput: softmax forward, the gradient of its cross entropy backward."""

from __future__ import annotations

from typing import Any

from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes, times
from gnomon.ops.nn.softmax import softmax, spread
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.reduce import Axes, total

NORMALIZATIONS = ("batch", "null", "valid")


@op("SoftmaxOutput", inputs=("data", "label"), aliases=("Softmax",))
class SoftmaxOutput(Op):
    """Softmax of `data`; backward gives `softmax - label` whatever comes from above.

    Classes lie along all axes but the first, along axis 1 with `multi_output`, along the last one
    with `preserve_shape`. A label of the shape of `data` is a distribution, others name classes.
    """

    grad_scale: float = param(1.0, doc="What the gradient is multiplied by.")
    ignore_label: float = param(-1.0, doc="The label that is left out, with `use_ignore`.")
    multi_output: bool = param(False, doc="Classes along axis 1, a label for every other place.")
    use_ignore: bool = param(False, doc="No gradient where the label is `ignore_label`.")
    preserve_shape: bool = param(False, doc="Classes along the last axis.")
    normalization: str = param(
        "null", choices=NORMALIZATIONS, doc="What the gradient is divided by."
    )
    out_grad: bool = param(False, doc="Multiply by the gradient from above.")
    smooth_alpha: float = param(0.0, low=0, high=1, doc="Share of the label given to the others.")

    def axes(self, ndim: int) -> Axes:
        """The axes along which classes lie."""
        if self.multi_output:
            return (1,)
        return (ndim - 1,) if self.preserve_shape else tuple(range(1, ndim))

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        places = UNKNOWN if UNKNOWN in data[2:] else times(data[2:])
        usual = (data[0], places) if self.multi_output else data[:-1]
        label = s["label"]
        if label is None or (UNKNOWN in label and len(label) == len(usual)):
            s["label"] = usual
            return
        fits = {times(data), times(data[:-1]), times(data[:1]), times((data[0], *data[2:]))}
        if UNKNOWN not in (*data, *label) and times(label) not in fits:
            expected = f"a label for each class axis of data, shape {data}"
            raise s.refuse("label", expected, f"shape {label}")

    def free(self, data: Shape, label: Shape) -> Free | None:
        """Batches do nothing but count, unless the gradient is divided by what they hold."""
        if self.normalization != "null" or len(data) < 2 or label[:1] != data[:1]:
            return None
        return Free(data[:1], (*data[1:], len(label), *label[1:]))

    def forward(self, data: Expr, label: Expr) -> Expr:
        return softmax(data, self.axes(data.ndim))

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr, None]:
        y, label = outputs[0], inputs[1]
        if label.shape == y.shape:
            return self.scaled(y - label, 1, out_grads), None
        axes = self.axes(y.ndim)
        # one label for each place, with size 1 where classes lie
        places = tuple(1 if a in axes else d for a, d in enumerate(y.shape))
        chosen = spread(ext.reshape(first(label, times(places)), places), y)
        away = y - self.target(y, chosen, axes)
        if self.use_ignore:
            away = fn.where(fn.ne(chosen, self.ignore_label), away, 0)
        return self.scaled(away, self.divisor(y, label), out_grads), None

    def target(self, y: Expr, label: Expr, axes: Axes) -> Expr:
        """The distribution that the labels stand for."""
        hit = cast(fn.eq(class_numbers(y, axes), cast(label, int64)), y.dtype)
        classes = times([y.shape[a] for a in axes])
        if not self.smooth_alpha or self.multi_output:
            return hit
        other = self.smooth_alpha / max(classes - 1, 1)
        return fn.where(hit, 1 - self.smooth_alpha, other)

    def divisor(self, y: Expr, label: Expr) -> Expr | int:
        """What `normalization` divides the gradient by: all labels count, of joined classes too."""
        if self.normalization == "valid":
            counted = fn.ne(label, self.ignore_label)
            count = total(counted, tuple(range(label.ndim)))
            return fn.maximum(ext.reshape(count, (1,) * y.ndim), 1)
        if self.normalization == "batch":
            return times(label.shape)
        return times(y.shape[2:]) if self.multi_output else 1

    def scaled(self, away: Expr, divisor: Expr | int, out_grads: Any) -> Expr:
        """`away` times the scale, divided, and times the gradient from above where asked for."""
        if isinstance(divisor, Expr):
            away = away * spread(self.grad_scale / divisor, away)
        elif self.grad_scale != divisor:
            away = away * (self.grad_scale / divisor)
        return away * out_grads[0] if self.out_grad else away


def first(label: Expr, count: int) -> Expr:
    """The first `count` labels in a row: joined classes take no more than one a sample."""
    flat = ext.reshape(label, (times(label.shape),))
    return flat if flat.shape == (count,) else ext.slice_(flat, (0,), (count,))


def class_numbers(y: Expr, axes: Axes) -> Expr:
    """At each element the number of its class, counted in row-major order over `axes`."""
    number: Expr | None = None
    for axis in axes:
        place = ext.iota(y.shape, axis, int64)
        number = place if number is None else number * y.shape[axis] + place
    assert number is not None
    return number
