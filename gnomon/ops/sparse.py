"""Operators that sparse storage needs.

Here stands what they mean for all elements; how arrays that keep only some of them are computed
with stands in `gnomon.ndarray`. `_put_rows` and `_csr_dot` are what that is made of.
"""

from __future__ import annotations

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.binary import Counted
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, fixed_dtypes, one_dtype
from gnomon.ops.linalg import STORAGE
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.unary import like


@op("cast_storage", aliases=("_sparse_cast_storage",))
class CastStorage(Op):
    """The same elements in another storage."""

    stype: str = param(choices=STORAGE, doc="Storage of the output.")

    def forward(self, data: Expr) -> Expr:
        return fn.identity(data)


@op("_sparse_retain", inputs=("data", "indices"))
class Retain(Op):
    """The rows of `data` that `indices` name; the others are 0."""

    cases = (case((4, 2), [2, 0], differentiable=(0,)), case((3,), [1], differentiable=(0,)))
    types = one_dtype("data", "output")

    def reference(self, data: Array, indices: Array) -> Array:
        found = np.zeros_like(data)
        found[indices.astype(np.int64)] = data[indices.astype(np.int64)]
        return found

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        s["indices"] = s["indices"] or (-1,)

    def forward(self, data: Expr, indices: Expr) -> Expr:
        index = cast(indices, int64)
        kept = ext.take(data, index)
        count = ext.take_grad(index, ext.broadcast_to(like(1, data), kept.shape), data.shape[0])
        return ext.take_grad(index, kept, data.shape[0]) / fn.maximum(count, 1)


@op("_scatter_plus_scalar")
class ScatterPlusScalar(Counted):
    """What is stored plus a number; dense storage stores everything."""

    def forward(self, data: Expr) -> Expr:
        data = cast(data, self.counted(data.dtype))
        return data + like(self.scalar, data, modular=True)


@op("_scatter_minus_scalar")
class ScatterMinusScalar(Counted):
    """What is stored minus a number; dense storage stores everything."""

    def forward(self, data: Expr) -> Expr:
        data = cast(data, self.counted(data.dtype))
        return data - like(self.scalar, data, modular=True)


@op("_scatter_elemwise_div", inputs=("lhs", "rhs"))
class ScatterElemwiseDiv(Op):
    """The rows that `lhs` stores, divided by those of `rhs`."""

    cases = (case((2, 3), (2, 3), low=0.5),)

    def reference(self, lhs: Array, rhs: Array) -> Array:
        return lhs / rhs

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        return lhs / rhs


@op("_put_rows", inputs=("index", "data"))
class PutRows(Op):
    """Rows that are 0 but for the sums of those of `data` that `index` puts there."""

    rows: int = param(low=0, doc="How many rows there are.")
    cases = (
        case([2, 0, 2], (3, 4), rows=4, differentiable=(1,)),
        case([1], (1,), rows=2, differentiable=(1,)),
    )
    types = one_dtype("data", "output")

    def reference(self, index: Array, data: Array) -> Array:
        found = np.zeros((self.rows, *data.shape[1:]), data.dtype)
        np.add.at(found, index.astype(np.int64), data)
        return found

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["index"] = data[:1]
        s["output"] = (self.rows, *data[1:])

    def forward(self, index: Expr, data: Expr) -> Expr:
        return ext.take_grad(index, data, self.rows)


@op("_csr_dot", inputs=("values", "source", "target", "matrix"))
class CsrDot(Op):
    """Row `target[k]` gets `values[k]` times row `source[k]` of `matrix`, for every k.

    That is the product of a matrix of `values` at rows `target` and columns `source` with
    `matrix`; with both exchanged, of the transposed one.
    """

    rows: int = param(low=0, doc="Rows of the product.")
    cases = (case((3,), [1, 0, 1], [2, 2, 0], (2, 4), rows=3, differentiable=(0, 3)),)
    types = one_dtype("values", "matrix", "output")

    def reference(self, values: Array, source: Array, target: Array, matrix: Array) -> Array:
        whole = np.zeros((self.rows, len(matrix)), values.dtype)
        np.add.at(whole, (target.astype(np.int64), source.astype(np.int64)), values)
        return np.asarray(whole @ matrix)

    def shapes(self, s: Shapes) -> None:
        s.same("values", "source", "target")
        matrix = s.need("matrix")
        s["output"] = (self.rows, *matrix[1:])

    def forward(self, values: Expr, source: Expr, target: Expr, matrix: Expr) -> Expr:
        rows = ext.take(matrix, source)
        return ext.take_grad(target, rows * ext.broadcast_axis(values, rows.shape, 0), self.rows)


@op("_contrib_getnnz")
class CountStored(HostOp):
    """How many elements of a matrix are stored, in all or along an axis; not 0 if it is dense."""

    axis: int | None = param(None, low=0, high=1, doc="0: of each column, 1: of each row.")
    cases = (
        case([[1.0, 0, 2], [0, 0, 3]]),
        case([[1.0, 0, 2], [0, 0, 3]], axis=1),
        case([[1.0, 0, 2], [0, 0, 3]], axis=0),
    )
    types = fixed_dtypes(output=int64)
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        rows, columns = s.rank("data", 2)
        s["output"] = (1,) if self.axis is None else (rows if self.axis else columns,)

    def compute(self, data: Array) -> Array:
        return np.atleast_1d(np.count_nonzero(data, self.axis))

    def reference(self, data: Array) -> Array:
        return np.atleast_1d(np.asarray((data != 0).sum(self.axis)))


@op("_contrib_edge_id", inputs=("data", "u", "v"))
class EdgeId(HostOp):
    """What the matrix `data` stores from vertices `u` to `v`, both (n,): edges by number, or -1.

    What is 0 is not stored where `data` is dense.
    """

    cases = (case([[0, 1.0], [2, 0]], [0, 1, 1.0], [1, 0, 1.0]),)
    types = one_dtype("data", "output")
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s.rank("data", 2)
        s["u"] = s["v"] = (-1,)
        s.same("u", "v", "output")

    def compute(self, data: Array, u: Array, v: Array) -> Array:
        found = data[self.vertices("u", u, data, 0), self.vertices("v", v, data, 1)]
        return np.where(found != 0, found, -1)

    reference = compute

    def vertices(self, name: str, index: Array, data: Array, axis: int) -> Array:
        """Numbers of rows or columns; ShapeError where there is none such."""
        found = index.astype(np.int64)
        if found.size and not 0 <= found.min() <= found.max() < data.shape[axis]:
            expected = f"numbers from 0 to {data.shape[axis] - 1}"
            raise ShapeError(complaint(self.name, name, expected, f"{found.min()}, {found.max()}"))
        return found
