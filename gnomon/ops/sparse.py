"""Operators that sparse storage needs.

Here stands what they mean for all elements; how arrays that keep only some of them are computed
with stands in `gnomon.ndarray`. `_put_rows` and `_csr_dot` are what that is made of.
"""

from __future__ import annotations

from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.binary import Counted
from gnomon.ops.infer import Shapes, Types
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

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        s["indices"] = s["indices"] or (-1,)

    def types(self, t: Types) -> None:
        t.same("data", "output")

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

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        return lhs / rhs


@op("_put_rows", inputs=("index", "data"))
class PutRows(Op):
    """Rows that are 0 but for the sums of those of `data` that `index` puts there."""

    rows: int = param(low=0, doc="How many rows there are.")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["index"] = data[:1]
        s["output"] = (self.rows, *data[1:])

    def types(self, t: Types) -> None:
        t.same("data", "output")

    def forward(self, index: Expr, data: Expr) -> Expr:
        return ext.take_grad(index, data, self.rows)


@op("_csr_dot", inputs=("values", "source", "target", "matrix"))
class CsrDot(Op):
    """Row `target[k]` gets `values[k]` times row `source[k]` of `matrix`, for every k.

    That is the product of a matrix of `values` at rows `target` and columns `source` with
    `matrix`; with both exchanged, of the transposed one.
    """

    rows: int = param(low=0, doc="Rows of the product.")

    def shapes(self, s: Shapes) -> None:
        s.same("values", "source", "target")
        matrix = s.need("matrix")
        s["output"] = (self.rows, *matrix[1:])

    def types(self, t: Types) -> None:
        t.same("values", "matrix", "output")

    def forward(self, values: Expr, source: Expr, target: Expr, matrix: Expr) -> Expr:
        rows = ext.take(matrix, source)
        return ext.take_grad(target, rows * ext.broadcast_axis(values, rows.shape, 0), self.rows)
