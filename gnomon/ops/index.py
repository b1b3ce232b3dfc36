"""Operators that look elements up by indices, and choices by a condition."""

from __future__ import annotations

import numpy as np

from gnomon.dtype import DType, int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, Scalar, cast
from gnomon.ops.bounds import InBounds
from gnomon.ops.case import Array, case
from gnomon.ops.create import NUMBERS
from gnomon.ops.infer import Free, Shape, Shapes, Types, normal_axis, one_dtype, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.reduce import joined


def positions(index: Expr, size: int, mode: str = "clip") -> Expr:
    """`index` as positions below `size`: fractions cut off, outside ones clipped or wrapped."""
    whole = cast(index, int64)
    return fn.mod(whole, size) if mode == "wrap" else fn.clip(whole, 0, max(size - 1, 0))


@op("Embedding", inputs=("data", "weight"), aliases=("_sparse_Embedding",))
class Embedding(Op):
    """The row of `weight` for each number in `data`."""

    input_dim: int = param(low=1, doc="Rows of `weight`.")
    output_dim: int = param(low=1, doc="Columns of `weight`.")
    dtype: DType = param("float32", choices=NUMBERS, doc="Dtype of `weight`.")
    sparse_grad: bool = param(False, doc="Give the gradient of `weight` in row-sparse storage.")

    def shapes(self, s: Shapes) -> None:
        s["weight"] = (self.input_dim, self.output_dim)
        s["output"] = (*s.need("data"), self.output_dim)

    def types(self, t: Types) -> None:
        t["weight"] = t["weight"] or t["output"] or self.dtype
        t["output"] = t["weight"]

    def free(self, data: Shape, weight: Shape) -> Free:
        return Free((times(data),), weight)

    def forward(self, data: Expr, weight: Expr) -> Expr:
        return ext.take(weight, positions(data, self.input_dim))


@op("_contrib_SparseEmbedding", inputs=("data", "weight"))
class SparseEmbedding(Embedding):
    """The row of `weight`, which may be row-sparse, for each number in `data`."""

    sparse_grad: bool = param(True, doc="Give the gradient of `weight` in row-sparse storage.")


@op("take", inputs=("a", "indices"))
class Take(Op):
    """The parts of `a` along `axis` at `indices`."""

    axis: int = param(0, doc="The axis of `a`.")
    mode: str = param("clip", choices=("clip", "raise", "wrap"), doc="What becomes of others.")
    types = one_dtype("a", "output")

    def guard(self, a: Shape, indices: Shape) -> InBounds | None:
        if self.mode != "raise" or 0 in indices:
            return None
        axis = normal_axis(self.name, self.axis, len(a))
        return InBounds(low=(0,), high=(a[axis],), axis=axis)

    def shapes(self, s: Shapes) -> None:
        a, indices = s.need("a"), s.need("indices")
        axis = s.axis("a", self.axis)
        s["output"] = (*a[:axis], *indices, *a[axis + 1 :])

    def free(self, a: Shape, indices: Shape) -> Free:
        axis = normal_axis(self.name, self.axis, len(a))
        return Free((*indices, *a[:axis], *a[axis + 1 :]), a[axis : axis + 1])

    def forward(self, a: Expr, indices: Expr) -> Expr:
        axis = normal_axis(self.name, self.axis, a.ndim)
        at = positions(indices, a.shape[axis], self.mode)
        front = [axis, *(k for k in range(a.ndim) if k != axis)]
        found = ext.take(ext.transpose(a, front) if axis else a, at)
        # the axes of the indices stand in front: back to where the axis was
        m = at.ndim
        order = [*range(m, m + axis), *range(m), *range(m + axis, found.ndim)]
        return ext.transpose(found, order) if axis else found


@op("batch_take", inputs=("a", "indices"))
class BatchTake(Op):
    """One element of each row of `a`."""

    def shapes(self, s: Shapes) -> None:
        rows = s.rank("a", 2)[0]
        s["indices"] = s["output"] = (rows,)

    types = one_dtype("a", "output")

    def forward(self, a: Expr, indices: Expr) -> Expr:
        return ext.pick(a, positions(indices, a.shape[1]))


@op("pick", inputs=("data", "index"), aliases=("choose_element_0index",))
class Pick(Op):
    """One element of `data` along an axis for each number in `index`."""

    axis: int | None = param(-1, doc="The axis; all elements in a row where None.")
    keepdims: bool = param(False, doc="Keep the axis with size 1.")
    mode: str = param("clip", choices=("clip", "wrap"), doc="What becomes of others.")
    types = one_dtype("data", "output")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        axes = tuple(range(len(data))) if self.axis is None else (s.axis("data", self.axis),)
        s["output"] = joined(data, axes, self.keepdims)
        index = s["index"]
        wanted = joined(data, axes, index is not None and len(index) == len(data))
        if index != () or wanted != (1,):  # one number may come without an axis
            s["index"] = wanted

    def free(self, data: Shape, index: Shape) -> Free | None:
        last = self.axis in (-1, len(data) - 1)
        return Free(data[:-1], data[-1:]) if last else None

    def forward(self, data: Expr, index: Expr) -> Expr:
        axis = 0 if self.axis is None else normal_axis(self.name, self.axis, data.ndim)
        flat = data if self.axis is not None else ext.reshape(data, (times(data.shape),))
        order = [*(k for k in range(flat.ndim) if k != axis), axis]
        last = ext.transpose(flat, order) if axis != flat.ndim - 1 else flat
        at = ext.reshape(positions(index, last.shape[-1], self.mode), last.shape[:-1])
        axes = tuple(range(data.ndim)) if self.axis is None else (axis,)
        return ext.reshape(ext.pick(last, at), joined(data.shape, axes, self.keepdims))


@op("fill_element_0index", inputs=("lhs", "mhs", "rhs"))
class FillElement(Op):
    """`lhs` with one element of each row replaced by that of `mhs`, at the position in `rhs`.

    A position outside of the row leaves it as it is.
    """

    cases = (case((3, 4), (3,), [0, 3, 1], differentiable=(0, 1)),)
    types = one_dtype("lhs", "mhs", "output")

    def reference(self, lhs: Array, mhs: Array, rhs: Array) -> Array:
        found = lhs.copy()
        found[np.arange(len(lhs)), rhs.astype(np.int64)] = mhs
        return found

    def shapes(self, s: Shapes) -> None:
        s.same("lhs", "output")
        rows = s.rank("lhs", 2)[0]
        s["mhs"] = s["rhs"] = (rows,)

    def forward(self, lhs: Expr, mhs: Expr, rhs: Expr) -> Expr:
        hit = ext.one_hot(cast(rhs, int64), lhs.shape[1], lhs.dtype)
        wide = ext.broadcast_to(ext.reshape(mhs, (mhs.shape[0], 1)), lhs.shape)
        return fn.where(hit, wide, lhs)


@op("one_hot", inputs=("indices",))
class OneHot(Op):
    """`on_value` at the position each number names, `off_value` elsewhere."""

    depth: int = param(low=0, doc="Size of the new last axis.")
    on_value: float = param(1.0, doc="Value at the position.")
    off_value: float = param(0.0, doc="Value elsewhere.")
    dtype: DType = param("float32", choices=NUMBERS, doc="Dtype of the output.")

    def shapes(self, s: Shapes) -> None:
        s["output"] = (*s.need("indices"), self.depth)

    def types(self, t: Types) -> None:
        t["output"] = self.dtype

    def free(self, indices: Shape) -> Free:
        return Free(indices)

    def forward(self, indices: Expr) -> Expr:
        if indices.dtype.kind == "f":  # what is no number names no position
            indices = fn.where(fn.eq(indices, indices), indices, -1)
        marks = ext.one_hot(cast(indices, int64), self.depth, self.dtype)
        if (self.on_value, self.off_value) == (1, 0):
            return marks
        on, off = (Scalar(x, self.dtype) for x in (self.on_value, self.off_value))
        return fn.where(marks, on, off)


@op("where", inputs=("condition", "x", "y"), aliases=("_sparse_where",))
class Where(Op):
    """`x` where `condition` is not 0, else `y`; a condition of one axis chooses whole rows."""

    elementwise = True
    types = one_dtype("x", "y", "output")

    def shapes(self, s: Shapes) -> None:
        s.same("x", "y", "output")
        x = s.need("x")
        condition = s["condition"]
        s["condition"] = x[:1] if condition is not None and len(condition) == 1 else x

    def forward(self, condition: Expr, x: Expr, y: Expr) -> Expr:
        holds = cast(fn.ne(condition, 0), x.dtype)
        if holds.shape != x.shape:
            holds = ext.broadcast_axis(holds, x.shape, 0)
        return fn.where(holds, x, y)
