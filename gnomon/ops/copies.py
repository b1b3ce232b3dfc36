"""Operators that copy, set or place values; MXNet's own functions are made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, Scalar, cast
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, Types, one_dtype
from gnomon.ops.op import Op, numbered, op
from gnomon.ops.param import Dims, count, param


@op("_copyto", aliases=("_npi_copyto",))
class CopyTo(Op):
    """The same elements."""

    elementwise = True
    cases = (case((2, 3)), case((0, 2)), case([1, 2]))

    def forward(self, data: Expr) -> Expr:
        return fn.identity(data)

    def reference(self, data: Array) -> Array:
        return data


@op("_identity_with_attr_like_rhs", inputs=("lhs", "rhs"))
class IdentityLike(Op):
    """`lhs`, whose shape and dtype are those of `rhs`; `rhs` has no gradient."""

    cases = (case((2, 3), (2, 3), differentiable=(0,)),)

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        return fn.identity(lhs)

    def gradient(self, grad: Expr) -> dict[str, Expr]:
        return {"lhs": grad}

    def reference(self, lhs: Array, rhs: Array) -> Array:
        return lhs


@op("_set_value", inputs=())
class SetValue(Op):
    """One number in all elements; `out` says how many."""

    src: float = param(0.0, doc="The number.")

    def shapes(self, s: Shapes) -> None:
        s.need("output")

    def types(self, t: Types) -> None:
        t.need("output")

    def forward(self, *, out_shapes: Any, out_types: Any) -> Expr:
        return ext.broadcast_to(Scalar(self.src, out_types[0]), out_shapes[0])


@op("_onehot_encode", inputs=("lhs", "rhs"))
class OneHotEncode(Op):
    """Rows like those of `rhs` (n, k), 0 but for a 1 where `lhs` (n,) says; none if outside."""

    cases = (case([0, 2, 5.0], (3, 3)), case([1.0], (1, 2)))
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s.same("rhs", "output")
        s["lhs"] = (s.rank("rhs", 2)[0],)

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        return ext.one_hot(cast(lhs, int64), rhs.shape[1], rhs.dtype)

    def reference(self, lhs: Array, rhs: Array) -> Array:
        return np.asarray(np.arange(rhs.shape[1]) == lhs[:, None], rhs.dtype)


@op("_scatter_set_nd", inputs=("lhs", "rhs", "indices"), aliases=("_npi_scatter_set_nd",))
class ScatterSetNd(HostOp):
    """`lhs` with `rhs` at `indices`, whose first axis goes through the axes of `lhs`."""

    shape: Dims = param(doc="The shape of `lhs`.")
    cases = (
        case((2, 3), (2,), [[0, 1], [1, 2]], shape=(2, 3)),
        case((2, 3), (2, 3), [[1, 0]], shape=(2, 3)),
    )
    types = one_dtype("lhs", "rhs", "output")

    def shapes(self, s: Shapes) -> None:
        s["lhs"] = s["output"] = self.shape
        first, *rest = s.need("indices")
        if first > len(self.shape):
            raise s.refuse("indices", f"up to {len(self.shape)} rows", first)
        if first != -1:
            s["rhs"] = (*rest, *self.shape[first:])

    def places(self, indices: Array) -> tuple[Array, ...]:
        """The indices, one array an axis.

        Raises:
            ShapeError: one is outside of its axis.
        """
        found = tuple(indices.astype(np.int64))
        for axis, (at, size) in enumerate(zip(found, self.shape, strict=False)):
            if at.size and not -size <= at.min() <= at.max() < size:
                expected = f"numbers from {-size} to {size - 1} in row {axis}"
                got = f"{at.min()} to {at.max()}"
                raise ShapeError(complaint(self.name, "indices", expected, got))
        return found

    def compute(self, lhs: Array, rhs: Array, indices: Array) -> Array:
        found = lhs.copy()
        found[self.places(indices)] = rhs
        return found

    reference = compute

    def gradient(self, grad: Array, indices: Array) -> dict[str, Array]:
        places, left = self.places(indices), grad.copy()
        left[places] = 0
        return {"lhs": left, "rhs": grad[places]}


@op("reset_arrays", variadic="num_arrays")
class ResetArrays(Op):
    """0 in all elements of every array."""

    num_arrays: int = count(doc="How many arrays there are.")
    stem = "array_"
    cases = (case((2, 3), (4,), num_arrays=2),)
    gradient = Op.without_gradient

    def outputs(self) -> tuple[str, ...]:
        return numbered(self.num_arrays)

    def shapes(self, s: Shapes) -> None:
        for name, made in zip(self.arguments(), self.outputs(), strict=True):
            s.same(name, made)

    def types(self, t: Types) -> None:
        for name, made in zip(self.arguments(), self.outputs(), strict=True):
            t.same(name, made)

    def forward(self, *arrays: Expr) -> tuple[Expr, ...]:
        return tuple(ext.broadcast_to(Scalar(0, x.dtype), x.shape) for x in arrays)

    def reference(self, *arrays: Array) -> list[Array]:
        return [np.zeros_like(x) for x in arrays]
