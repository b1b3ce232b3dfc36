"""FullyConnected: an affine map of rows."""

from __future__ import annotations

from gnomon.expr import call, ext
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import param


@op("FullyConnected", inputs=("data", "weight", "bias"), aliases=("_sparse_FullyConnected",))
class FullyConnected(Op):
    """Rows of `data` times the transpose of `weight`, plus `bias`."""

    num_hidden: int = param(low=1, doc="Rows of `weight`.")
    no_bias: bool = param(False, doc="There is no `bias`.")
    flatten: bool = param(True, doc="Join all but the first axis of `data`.")

    def arguments(self) -> tuple[str, ...]:
        return ("data", "weight") if self.no_bias else ("data", "weight", "bias")

    def shapes(self, s: Shapes) -> None:
        if not self.no_bias:
            s["bias"] = (self.num_hidden,)
        s["weight"] = (self.num_hidden, UNKNOWN)
        data = s.need("data")
        kept, joined = (data[:1], data[1:]) if self.flatten else (data[:-1], data[-1:])
        s["weight"] = (self.num_hidden, times(joined))
        s["output"] = (*kept, self.num_hidden)
        if len(joined) == 1:
            joined = s.need("weight")[1:]
        s["data"] = (*s.need("output")[:-1], *joined)

    def free(self, data: Shape, weight: Shape, bias: Shape = ()) -> Free:
        return Free((times(data[:1] if self.flatten else data[:-1]),), weight)

    def forward(self, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
        kept = data.shape[:1] if self.flatten else data.shape[:-1]
        rows = ext.reshape(data, (times(kept), weight.shape[1]))
        product: Expr = call.dot(rows, weight, transpose_b=True)
        if bias is not None:
            product = product + ext.broadcast_axis(bias, product.shape, 1)
        return ext.reshape(product, (*kept, self.num_hidden))
