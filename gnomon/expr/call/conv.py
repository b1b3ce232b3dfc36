"""convolution: sums of products of a weight with every window of the data, in groups.

Data is (N, C, space...) with 1 to 3 axes of space, weight (filters, C / groups, kernel...).
Strides, padding and dilation are one number an axis. The two gradients are calls of their own; a
gradient of a gradient is again one of the three.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.call import windowed
from gnomon.expr.call.windowed import Parts
from gnomon.expr.composite import Call, composite
from gnomon.expr.ext import broadcast_axis, reduce, reshape
from gnomon.expr.ext.pack_col2patch import Patch
from gnomon.expr.node import Expr
from gnomon.expr.window import Sizes, places, span, windows
from gnomon.ground.record import record

Array = np.ndarray[Any, Any]


@record()
class Geometry:
    """Where the windows of a convolution lie."""

    stride: Sizes
    pad: Sizes
    dilate: Sizes
    groups: int

    def parts(self, weight: Sizes, out: Sizes) -> Parts:
        """The sizes of a convolution with a weight and a result of these shapes."""
        patch = Patch(weight[2:], self.stride, self.dilate, self.pad)
        filters = weight[0] // self.groups
        return Parts(patch, self.groups, filters, weight[1], out[0], out[2:])


@composite
class Convolution(Call):
    """The convolution of `data` with `weight`: (N, filters, places...)."""

    pictures = True
    data: Expr
    weight: Expr
    how: Geometry

    def infer(self) -> tuple[Sizes, DType]:
        data, weight, how = self.data, self.weight, self.how
        if data.ndim != weight.ndim or not 3 <= data.ndim <= 5:
            raise ShapeError(
                complaint("convolution", "weight", f"the rank of {data!r}, 3 to 5", f"{weight!r}")
            )
        if data.dtype is not weight.dtype:
            raise DTypeError(
                complaint("convolution", "weight", f"dtype {data.dtype.name}", f"{weight!r}")
            )
        if data.shape[1] != weight.shape[1] * how.groups or weight.shape[0] % how.groups:
            expected = f"(filters, {data.shape[1]} / groups {how.groups}, kernel...)"
            raise ShapeError(complaint("convolution", "weight", expected, f"{weight!r}"))
        reach = span(weight.shape[2:], how.dilate)
        sizes = places(data.shape[2:], reach, how.stride, how.pad)
        if min(sizes) < 1:
            expected = f"sizes of at least the window's {reach}"
            raise ShapeError(
                complaint("convolution", "data", expected, f"{data!r} with padding {how.pad}")
            )
        return (data.shape[0], weight.shape[0], *sizes), data.dtype

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        to_data = ConvolutionData(g, self.weight, self.how, self.data.shape[2:])
        to_weight = ConvolutionWeight(self.data, g, self.how, self.weight.shape[2:])
        return (self.data, to_data), (self.weight, to_weight)

    def reference(self, *operands: Array) -> Array:
        x, w = operands
        seen = patches(x, self.how, w.shape[2:], self.shape[2:])
        w = by_group(w, 0, self.how.groups)
        axes = "abc"[: x.ndim - 2], "xyz"[: x.ndim - 2]
        out = np.einsum(f"ngi{axes[0]}{axes[1]},goi{axes[1]}->ngo{axes[0]}", seen, w)
        return np.asarray(out.reshape(self.shape))

    def fallback(self) -> Expr:
        """The same by other expressions; of 16 bits, in float32."""
        if (wide := self.in_single()) is not None:
            return wide
        parts = self.how.parts(self.weight.shape, self.shape)
        return reshape(windowed.forward(self.data, self.weight, parts), self.shape)


@composite
class BiasedConvolution(Call):
    """The convolution of `data` with `weight`, plus a number of `bias` for each filter."""

    pictures = True
    data: Expr
    weight: Expr
    bias: Expr
    how: Geometry

    def infer(self) -> tuple[Sizes, DType]:
        if self.bias.shape != self.weight.shape[:1] or self.bias.dtype is not self.weight.dtype:
            expected = f"shape {self.weight.shape[:1]}, {self.weight.dtype.name}"
            raise ShapeError(complaint("convolution", "bias", expected, f"{self.bias!r}"))
        return self.plain().infer()

    def plain(self) -> Convolution:
        """The convolution alone."""
        return Convolution(self.data, self.weight, self.how)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        others = [a for a in range(g.ndim) if a != 1]
        return (*self.plain().adjoint(g), (self.bias, reduce(g, "sum", others)))

    def reference(self, *operands: Array) -> Array:
        x, w, bias = operands
        return self.plain().reference(x, w) + bias.reshape(-1, *(1,) * (x.ndim - 2))

    def fallback(self) -> Expr:
        """The convolution, and the bias along the filters; of 16 bits, in float32."""
        if (wide := self.in_single()) is not None:
            return wide
        return self.plain() + broadcast_axis(self.bias, self.shape, 1)


@composite
class ConvolutionData(Call):
    """What a convolution's data receives: `grad` spread over the windows; a deconvolution."""

    pictures = True
    grad: Expr
    weight: Expr
    how: Geometry
    space: Sizes

    def infer(self) -> tuple[Sizes, DType]:
        channels = self.weight.shape[1] * self.how.groups
        return (self.grad.shape[0], channels, *self.space), self.grad.dtype

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        to_grad = Convolution(g, self.weight, self.how)
        to_weight = ConvolutionWeight(g, self.grad, self.how, self.weight.shape[2:])
        return (self.grad, to_grad), (self.weight, to_weight)

    def reference(self, *operands: Array) -> Array:
        g, w = operands
        groups, kernel = self.how.groups, w.shape[2:]
        g, w = by_group(g, 1, groups), by_group(w, 0, groups)
        axes = "abc"[: len(kernel)], "xyz"[: len(kernel)]
        cols = np.einsum(f"ngo{axes[0]},goi{axes[1]}->ngi{axes[0]}{axes[1]}", g, w)
        cols = cols.reshape(self.shape[0], self.shape[1], *cols.shape[3:])
        return fold_patches(cols, self.how, kernel, self.space)

    def fallback(self) -> Expr:
        """The same by other expressions; of 16 bits, in float32."""
        if (wide := self.in_single()) is not None:
            return wide
        parts = self.how.parts(self.weight.shape, self.grad.shape)
        return windowed.to_data(self.grad, self.weight, parts, self.space)


@composite
class ConvolutionWeight(Call):
    """What the weight of a convolution receives."""

    data: Expr
    grad: Expr
    how: Geometry
    kernel: Sizes

    def infer(self) -> tuple[Sizes, DType]:
        inner = self.data.shape[1] // self.how.groups
        return (self.grad.shape[1], inner, *self.kernel), self.data.dtype

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        to_data = ConvolutionData(self.grad, g, self.how, self.data.shape[2:])
        return (self.data, to_data), (self.grad, Convolution(self.data, g, self.how))

    def reference(self, *operands: Array) -> Array:
        x, g = operands
        seen = patches(x, self.how, self.kernel, g.shape[2:])
        g = by_group(g, 1, self.how.groups)
        axes = "abc"[: len(self.kernel)], "xyz"[: len(self.kernel)]
        out = np.einsum(f"ngi{axes[0]}{axes[1]},ngo{axes[0]}->goi{axes[1]}", seen, g)
        return np.asarray(out.reshape(self.shape))

    def fallback(self) -> Expr:
        """The same by other expressions; of 16 bits, in float32."""
        if (wide := self.in_single()) is not None:
            return wide
        parts = self.how.parts(self.shape, self.grad.shape)
        return reshape(windowed.to_weight(self.data, self.grad, parts), self.shape)


def convolution(
    data: Expr,
    weight: Expr,
    stride: Sizes,
    pad: Sizes,
    dilate: Sizes,
    groups: int = 1,
    bias: Expr | None = None,
) -> Convolution | BiasedConvolution:
    """`weight` laid on every window of `data`; plus `bias`, a number for each filter, if given.

    >>> from gnomon.expr.node import Buffer
    >>> convolution(Buffer((1, 3, 8, 8)), Buffer((4, 3, 3, 3)), (1, 1), (1, 1), (1, 1)).shape
    (1, 4, 8, 8)

    Raises:
        ShapeError: the weight does not fit the data, or the window is larger than the padded data.
        DTypeError: the operands' dtypes differ.
    """
    how = Geometry(tuple(stride), tuple(pad), tuple(dilate), groups)
    return (
        Convolution(data, weight, how)
        if bias is None
        else BiasedConvolution(data, weight, bias, how)
    )


def patches(x: Array, how: Geometry, kernel: Sizes, counts: Sizes) -> Array:
    """Windows in NumPy, by group: (N, groups, C / groups, places..., kernel...)."""
    seen = windows(x, kernel, how.stride, how.pad, how.dilate, counts, 0.0)
    return by_group(seen, 1, how.groups)


def by_group(x: Array, axis: int, groups: int) -> Array:
    """`x` with `axis` parted into groups and what is in one."""
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def fold_patches(cols: Array, how: Geometry, kernel: Sizes, space: Sizes) -> Array:
    """Windows (N, C, places..., kernel...) added back to where they came from."""
    n, c = cols.shape[:2]
    counts = cols.shape[2 : 2 + len(kernel)]
    padded = [
        max(s + 2 * p, (m - 1) * t + w)
        for s, p, m, t, w in zip(
            space, how.pad, counts, how.stride, span(kernel, how.dilate), strict=True
        )
    ]
    out = np.zeros((n, c, *padded), cols.dtype)
    for k in np.ndindex(*kernel):
        where = tuple(
            slice(a * d, a * d + (m - 1) * t + 1, t)
            for a, d, m, t in zip(k, how.dilate, counts, how.stride, strict=True)
        )
        out[(slice(None), slice(None), *where)] += cols[(..., *k)]
    inside = tuple(slice(p, p + s) for p, s in zip(how.pad, space, strict=True))
    return out[(slice(None), slice(None), *inside)]
