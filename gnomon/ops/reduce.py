"""Operators that join axes: sums, products, extremes, norms and positions of extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.dtype import DType, bool_, float32, float64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ground.record import cached_property
from gnomon.ops.infer import Shape, Shapes, Types, normal_axes, normal_axis, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param, told_apart

Axes = tuple[int, ...]


class Reduction(Op):
    """What reductions share: which axes are joined, and whether they stay with size 1."""

    axis: Dims | None = param(None, doc="Axes to join; all of them where None or empty.")
    keepdims: bool = param(False, doc="Keep joined axes with size 1.")
    exclude: bool = param(False, doc="Join the axes that `axis` does not name.")

    def axes(self, ndim: int) -> Axes:
        """The axes that are joined, of `ndim`."""
        if not self.axis:
            return tuple(range(ndim))
        named = normal_axes(self.name, self.axis, ndim)
        return tuple(a for a in range(ndim) if (a in named) != self.exclude)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "join" in vars(cls) and "counted" not in vars(cls):
            setattr(cls, "reduces", None)  # noqa: B010 - its numbers may depend on shapes

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output"] = joined(data, self.axes(len(data)), self.keepdims)

    def reduces(self, shape: Shape) -> tuple[Axes, Shape]:
        axes = self.axes(len(shape))
        return axes, joined(shape, axes, self.keepdims)

    @cached_property
    def alike(self) -> tuple[Any, ...]:
        """What tells reductions apart beside their axes."""
        rest = [(k, v) for k, v in self._key[1:] if k not in ("axis", "keepdims", "exclude")]
        return type(self), *((k, v, told_apart(v)) for k, v in rest)

    def counted(self, count: int) -> tuple[float, ...]:
        """Hook: the numbers in the expression of `join`, where they depend on how many are joined.

        None at all where no number does. A class with a `join` of its own says it anew, or its
        recipes serve the shapes alone that they were made for.
        """
        return ()

    def forward(self, data: Expr) -> Expr:
        axes = self.axes(data.ndim)
        if data.dtype is bool_:  # truths are summed as numbers: what is not 0 is true
            numbers = self.join(cast(data, float32), axes)
            return cast(ext.reshape(numbers, joined(data.shape, axes, self.keepdims)), bool_)
        return ext.reshape(self.join(data, axes), joined(data.shape, axes, self.keepdims))

    def join(self, data: Expr, axes: Axes) -> Expr:
        """Hook: `data` joined over `axes`, which stay with size 1."""
        raise TypeError(f"{self.name} says nothing of joining")


def joined(shape: Shape, axes: Axes, keepdims: bool) -> Shape:
    """`shape` after joining `axes`; a single number has shape (1,)."""
    if keepdims:
        return tuple(1 if a in axes else d for a, d in enumerate(shape))
    return tuple(d for a, d in enumerate(shape) if a not in axes) or (1,)


def total(data: Expr, axes: Axes) -> Expr:
    """The sum over `axes`, which stay with size 1."""
    return ext.reduce(data, "sum", axes, keepdims=True)


def mean(data: Expr, axes: Axes) -> Expr:
    """The mean over `axes`, which stay with size 1."""
    return total(data, axes) / times([data.shape[a] for a in axes])


def without_nan(data: Expr, instead: int) -> Expr:
    """`data` with `instead` in the place of NaN."""
    return fn.where(fn.eq(data, data), data, instead)


def reduction(
    name: str, join: Callable[[Expr, Axes], Expr], doc: str, *aliases: str, divides: bool = False
) -> type[Op]:
    """Declare the operator that joins axes by `join`, which may divide by how many are joined."""

    class Row(Reduction):
        def join(self, data: Expr, axes: Axes) -> Expr:
            return join(data, axes)

        def counted(self, count: int) -> tuple[float, ...]:
            return (count,) if divides else ()

    Row.__name__ = Row.__qualname__ = name
    Row.__doc__ = doc
    return op(name, aliases=aliases)(Row)


def _by(reducer: str) -> Callable[[Expr, Axes], Expr]:
    return lambda data, axes: ext.reduce(data, reducer, axes, keepdims=True)


reduction("sum", total, "The sum over axes.", "sum_axis", "_sparse_sum")
reduction("mean", mean, "The mean over axes.", "_sparse_mean", divides=True)
reduction("prod", _by("prod"), "The product over axes.")
reduction("max", _by("max"), "The greatest value over axes.", "max_axis")
reduction("min", _by("min"), "The least value over axes.", "min_axis")
reduction(
    "nansum", lambda data, axes: total(without_nan(data, 0), axes), "The sum without NaN over axes."
)
reduction(
    "nanprod",
    lambda data, axes: ext.reduce(without_nan(data, 1), "prod", axes, keepdims=True),
    "The product without NaN over axes.",
)
reduction(
    "_square_sum", lambda data, axes: total(data * data, axes), "The sum of squares over axes."
)


@op("norm", aliases=("_sparse_norm",))
class Norm(Reduction):
    """The sum of absolute values (`ord` 1), or the root of the sum of squares (`ord` 2)."""

    ord: int = param(2, choices=(1, 2), doc="Which norm.")
    axis: Dims | None = param(None, doc="Axes to join; all of them where None or empty.")
    out_dtype: DType | None = param(
        None,
        choices=("float16", "float32", "float64", "int32", "int64", "int8"),
        doc="Dtype of the output; that of `data` where None.",
    )
    keepdims: bool = param(False, doc="Keep joined axes with size 1.")
    exclude = False

    def counted(self, count: int) -> tuple[float, ...]:
        return ()

    def types(self, t: Types) -> None:
        t["output"] = self.out_dtype or t["data"]
        t["data"] = None if self.out_dtype else t["output"]

    def join(self, data: Expr, axes: Axes) -> Expr:
        dtype = self.out_dtype or data.dtype
        data = cast(data, dtype)
        if self.ord == 1:
            return total(fn.abs(data), axes)
        if dtype.kind != "f":  # squares may be beyond integers
            data = cast(data, float64)
        return cast(fn.sqrt(total(data * data, axes)), dtype)


@op("moments", outputs=("output0", "output1"))
class Moments(Op):
    """The mean and the variance over axes."""

    axes: Dims | None = param(None, doc="Axes to join; all of them where None or empty.")
    keepdims: bool = param(False, doc="Keep joined axes with size 1.")

    def over(self, ndim: int) -> Axes:
        """The axes that are joined, of `ndim`."""
        return normal_axes(self.name, self.axes, ndim) if self.axes else tuple(range(ndim))

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output0"] = s["output1"] = joined(data, self.over(len(data)), self.keepdims)

    def forward(self, data: Expr) -> tuple[Expr, Expr]:
        axes = self.over(data.ndim)
        center, variance = mean_and_variance(data, axes)
        shape = joined(data.shape, axes, self.keepdims)
        return ext.reshape(center, shape), ext.reshape(variance, shape)


def mean_and_variance(data: Expr, axes: Axes) -> tuple[Expr, Expr]:
    """Mean and variance of `data` over `axes`, which stay with size 1."""
    center = mean(data, axes)
    away = data - ext.broadcast_to(center, data.shape)
    return center, mean(away * away, axes)


class Position(Op):
    """What argmax and argmin share; positions come in the dtype of `data`, the first of equals."""

    axis: int | None = param(None, doc="Axis to look along; all elements in a row where None.")
    keepdims: bool = param(False, doc="Keep the axis with size 1.")
    extreme = "max"

    def axes(self, ndim: int) -> Axes:
        """The axes that are joined, of `ndim`."""
        if self.axis is None:
            return tuple(range(ndim))
        return (normal_axis(self.name, self.axis, ndim),)

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output"] = joined(data, self.axes(len(data)), self.keepdims)

    def forward(self, data: Expr) -> Expr:
        axes = self.axes(data.ndim)
        shape = joined(data.shape, axes, self.keepdims)
        flat = data if self.axis is not None else ext.reshape(data, (times(data.shape),))
        axis = axes[0] if self.axis is not None else 0
        return cast(ext.reshape(ext.arg_reduce(flat, self.extreme, axis), shape), data.dtype)

    def backward(self, out_grads: object, inputs: object, outputs: object) -> tuple[None]:
        return (None,)


@op("argmax")
class ArgMax(Position):
    """The position of the greatest value along an axis."""


@op("argmin")
class ArgMin(Position):
    """The position of the least value along an axis."""

    extreme = "min"


@op("argmax_channel")
class ArgMaxChannel(Op):
    """The position of the greatest value along the second axis, as for class scores."""

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output"] = joined(data, (s.axis("data", 1),), False)

    def forward(self, data: Expr) -> Expr:
        return cast(ext.arg_reduce(data, "max", 1), data.dtype)
