"""LayerNorm, InstanceNorm, GroupNorm, L2Normalization and LRN: normalization within a sample."""

from __future__ import annotations

from collections.abc import Sequence

from gnomon.base import ParamError, complaint
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.infer import Free, Shape, Shapes, normal_axis, times
from gnomon.ops.movement import along
from gnomon.ops.nn.softmax import spread
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.reduce import Axes, joined, mean, mean_and_variance, total

INPUTS = ("data", "gamma", "beta")


def normalized(x: Expr, axes: Axes, eps: float) -> tuple[Expr, Expr, Expr]:
    """`x` with mean 0 and variance 1 over `axes`, the mean and the standard deviation."""
    center, variance = mean_and_variance(x, axes)
    deviation = fn.sqrt(variance + eps)
    return (x - spread(center, x)) / spread(deviation, x), center, deviation


def normalized_anew(
    x: Expr, axes: Axes, eps: float, known: Sequence[Expr] = ()
) -> tuple[Expr, Expr]:
    """What `normalized(x)` gave first, and one over the deviation.

    `known` are mean and deviation from there, which serve unless they were rounded to 16 bits.
    """
    if not known or x.dtype.size < 4:
        known = normalized(x, axes, eps)[1:]
    center, rate = known[0], 1 / known[1]
    return (x - spread(center, x)) * spread(rate, x), rate


def normalized_gradient(grads: Sequence[Expr], y: Expr, rate: Expr, axes: Axes) -> Expr:
    """The gradient of x by those of `normalized(x)`, of which `y` is the first, or of it alone.

    It takes a pass less than the derived one, which sums `y` where the sum is 0.
    """
    grad, *of_statistics = grads
    even = grad - spread(mean(grad, axes), y) - y * spread(mean(grad * y, axes), y)
    found = even * spread(rate, y)
    if not of_statistics:
        return found
    by_center, by_deviation = (spread(g, y) for g in of_statistics)
    return found + (by_center + by_deviation * y) / times([y.shape[a] for a in axes])


def affine_gradient(grad: Expr, y: Expr, axis: int) -> tuple[Expr, Expr]:
    """The gradients of scale and shift, which have an element for each of `y` along `axis`."""
    others = tuple(a for a in range(y.ndim) if a != axis)
    return ext.reduce(grad * y, "sum", others), ext.reduce(grad, "sum", others)


@op("LayerNorm", inputs=INPUTS, outputs=("output", "mean", "std"))
class LayerNorm(Op):
    """Mean 0 and variance 1 along an axis, then times `gamma` plus `beta`, one an element of it."""

    axis: int = param(-1, doc="The axis.")
    eps: float = param(1e-5, doc="Added to the variance.")
    output_mean_var: bool = param(False, doc="Show the outputs `mean` and `std`.")

    @property
    def num_visible_outputs(self) -> int:
        return 3 if self.output_mean_var else 1

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        axis = s.axis("data", self.axis)
        s["gamma"] = s["beta"] = (data[axis],)
        s["mean"] = s["std"] = joined(data, (axis,), True)

    def free(self, data: Shape, gamma: Shape, beta: Shape) -> Free | None:
        last = self.axis in (-1, len(data) - 1)
        return Free(data[:-1], data[-1:]) if last else None

    def forward(self, data: Expr, gamma: Expr, beta: Expr) -> tuple[Expr, ...]:
        axis = normal_axis(self.name, self.axis, data.ndim)
        y, center, deviation = normalized(data, (axis,), self.eps)
        scale, shift = (ext.broadcast_axis(v, data.shape, axis) for v in (gamma, beta))
        return y * scale + shift, center, deviation

    def gradient(
        self, grads: tuple[Expr, ...], data: Expr, gamma: Expr, mean: Expr, std: Expr
    ) -> tuple[Expr, ...]:
        axis = normal_axis(self.name, self.axis, data.ndim)
        y, rate = normalized_anew(data, (axis,), self.eps, (mean, std))
        scaled = grads[0] * ext.broadcast_axis(gamma, data.shape, axis)
        found = normalized_gradient((scaled, *grads[1:]), y, rate, (axis,))
        return found, *affine_gradient(grads[0], y, axis)


@op("InstanceNorm", inputs=INPUTS)
class InstanceNorm(Op):
    """Each channel of each sample with mean 0 and variance 1, then times `gamma` plus `beta`."""

    eps: float = param(0.001, doc="Added to the variance.")

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        s["gamma"] = s["beta"] = (data[s.axis("data", 1)],)

    def forward(self, data: Expr, gamma: Expr, beta: Expr) -> Expr:
        y, _, _ = normalized(data, tuple(range(2, data.ndim)), self.eps)
        scale, shift = (ext.broadcast_axis(v, data.shape, 1) for v in (gamma, beta))
        return y * scale + shift

    def gradient(self, grad: Expr, data: Expr, gamma: Expr) -> tuple[Expr, ...]:
        axes = tuple(range(2, data.ndim))
        y, rate = normalized_anew(data, axes, self.eps)
        scaled = grad * ext.broadcast_axis(gamma, data.shape, 1)
        found = normalized_gradient((scaled,), y, rate, axes)
        return found, *affine_gradient(grad, y, 1)


@op("GroupNorm", inputs=INPUTS, outputs=("output", "mean", "std"))
class GroupNorm(Op):
    """Each group of channels with mean 0 and variance 1, times its `gamma`, plus its `beta`."""

    num_groups: int = param(1, low=1, doc="How many groups the channels are parted into.")
    eps: float = param(1e-5, doc="Added to the variance.")
    output_mean_var: bool = param(False, doc="Show the outputs `mean` and `std`.")

    @property
    def num_visible_outputs(self) -> int:
        return 3 if self.output_mean_var else 1

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        data = s.need("data")
        channels = data[s.axis("data", 1)]
        if channels > 0 and channels % self.num_groups:
            raise s.refuse("data", f"channels in {self.num_groups} groups", f"shape {data}")
        s["gamma"] = s["beta"] = (self.num_groups,)
        s["mean"] = s["std"] = (data[0], self.num_groups)

    def forward(self, data: Expr, gamma: Expr, beta: Expr) -> tuple[Expr, ...]:
        groups = self.grouped(data)
        y, center, deviation = normalized(groups, tuple(range(2, groups.ndim)), self.eps)
        scale, shift = (ext.broadcast_axis(v, groups.shape, 1) for v in (gamma, beta))
        sizes = groups.shape[:2]
        output = ext.reshape(y * scale + shift, data.shape)
        return output, ext.reshape(center, sizes), ext.reshape(deviation, sizes)

    def gradient(
        self, grads: tuple[Expr, ...], data: Expr, gamma: Expr, mean: Expr, std: Expr
    ) -> tuple[Expr, ...]:
        groups = self.grouped(data)
        axes = tuple(range(2, groups.ndim))
        one_each = (*groups.shape[:2], *(1 for _ in axes))
        center, deviation, *of_statistics = (
            ext.reshape(x, one_each) for x in (mean, std, *grads[1:])
        )
        y, rate = normalized_anew(groups, axes, self.eps, (center, deviation))
        grad = self.grouped(grads[0])
        scaled = grad * ext.broadcast_axis(gamma, groups.shape, 1)
        found = normalized_gradient((scaled, *of_statistics), y, rate, axes)
        return ext.reshape(found, data.shape), *affine_gradient(grad, y, 1)

    def grouped(self, data: Expr) -> Expr:
        """`data` with an axis of its own for the groups, before their channels."""
        n, c, *rest = data.shape
        return ext.reshape(data, (n, self.num_groups, c // self.num_groups, *rest))


@op("L2Normalization")
class L2Normalization(Op):
    """Divided by the root of the sum of squares over the axes that `mode` names."""

    eps: float = param(1e-10, doc="Added to the sum.")
    mode: str = param(
        "instance",
        choices=("channel", "instance", "spatial"),
        doc="All axes but the first, axis 1, or the axes from 2 on.",
    )

    def forward(self, data: Expr) -> Expr:
        ndim = data.ndim
        named = {"instance": range(1, ndim), "channel": (1,), "spatial": range(2, ndim)}
        length = fn.sqrt(total(data * data, tuple(named[self.mode])) + self.eps)
        return data / spread(length, data)


@op("LRN")
class LRN(Op):
    """Divided by a power of the mean square over `nsize` neighbouring channels."""

    alpha: float = param(1e-4, doc="Weight of the mean square.")
    beta: float = param(0.75, doc="The power.")
    knorm: float = param(2.0, doc="What is added to the mean square.")
    nsize: int = param(low=1, doc="How many channels.")

    def forward(self, data: Expr) -> Expr:
        return data / self.root(self.level(data))

    def gradient(self, grad: Expr, data: Expr) -> Expr:
        """By the power's own derivative, which is 0 where the level is infinite; roots' is not."""
        level = self.level(data)
        share = grad / self.root(level)
        others = self.near(share * data / level)
        return share - others * data * (2 * self.alpha * self.beta / self.nsize)

    def near(self, data: Expr) -> Expr:
        """The sum over neighbouring channels."""
        if data.ndim < 2:
            raise ParamError(complaint(self.name, "data", "at least 2 axes", data.shape))
        reach = min((self.nsize - 1) // 2, max(data.shape[1] - 1, 0))
        rest = [0] * (data.ndim - 2)
        wide = ext.pad(data, [0, reach, *rest], [0, reach, *rest])
        found = along(wide, 1, 0, data.shape[1])
        for k in range(1, 2 * reach + 1):
            found = found + along(wide, 1, k, k + data.shape[1])
        return found

    def level(self, data: Expr) -> Expr:
        """What the power is taken of."""
        return self.near(data * data) * (self.alpha / self.nsize) + self.knorm

    def root(self, level: Expr) -> Expr:
        """`level` to the power of `beta`."""
        if self.beta != 0.75:
            return fn.power(level, self.beta)
        root = fn.sqrt(level)  # two roots are a small part of a power
        return root * fn.sqrt(root)
