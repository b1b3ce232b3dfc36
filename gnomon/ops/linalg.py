"""Matrix products."""

from __future__ import annotations

from gnomon.expr import call, ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes, show_shape, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import count, param

STORAGE = ("csr", "default", "row_sparse")


class Product(Op):
    """What the products share."""

    transpose_a: bool = param(False, doc="Take the left one transposed.")
    transpose_b: bool = param(False, doc="Take the right one transposed.")
    forward_stype: str | None = param(None, choices=STORAGE, doc="Storage of the output.")


@op("dot", inputs=("lhs", "rhs"), aliases=("_sparse_dot",))
class Dot(Product):
    """Sums of products over the last axis of `lhs` and the first of `rhs`.

    Transposed, the sums go over the first axis of `lhs` and the last of `rhs`.
    """

    def kept(self, lhs: Shape, rhs: Shape) -> tuple[Shape, Shape]:
        """The axes of either side that the output keeps."""
        left = lhs[1:] if self.transpose_a else lhs[:-1]
        return left, rhs[:-1] if self.transpose_b else rhs[1:]

    def shapes(self, s: Shapes) -> None:
        lhs, rhs = s.need("lhs"), s.need("rhs")
        inner = lhs[0 if self.transpose_a else -1]
        if UNKNOWN != inner != rhs[-1 if self.transpose_b else 0] != UNKNOWN:
            raise s.refuse("rhs", f"size {inner} along the axis summed over", show_shape(rhs))
        left, right = self.kept(lhs, rhs)
        s["output"] = left + right or (1,)

    def free(self, lhs: Shape, rhs: Shape) -> Free:
        left, right = self.kept(lhs, rhs)
        return Free((times(left), lhs[0 if self.transpose_a else -1], times(right)))

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        left, right = self.kept(lhs.shape, rhs.shape)
        inner = lhs.shape[0 if self.transpose_a else -1]
        m, n = times(left), times(right)
        a = ext.reshape(lhs, (inner, m) if self.transpose_a else (m, inner))
        b = ext.reshape(rhs, (n, inner) if self.transpose_b else (inner, n))
        product = call.dot(a, b, self.transpose_a, self.transpose_b)
        return ext.reshape(product, left + right or (1,))


@op("batch_dot", inputs=("lhs", "rhs"))
class BatchDot(Product):
    """The matrix product of the last two axes, for every position of the axes before them."""

    def shapes(self, s: Shapes) -> None:
        lhs, rhs = s.need("lhs"), s.need("rhs")
        if len(lhs) < 3 or len(rhs) != len(lhs):
            expected = "as many axes on both sides, at least 3"
            raise s.refuse("rhs", expected, f"{show_shape(lhs)} and {show_shape(rhs)}")
        *batch, m, k = self.turned(lhs, self.transpose_a)
        *_, _, n = self.turned(rhs, self.transpose_b)
        s["rhs"] = (*batch, *self.turned((k, n), self.transpose_b))
        rhs = s.need("rhs")
        s["lhs"] = (
            *rhs[:-2],
            *self.turned((m, self.turned(rhs, self.transpose_b)[-2]), self.transpose_a),
        )
        s["output"] = (*s.need("lhs")[:-2], m, n)

    @staticmethod
    def turned(shape: Shape, transposed: bool) -> Shape:
        """`shape` with the last two axes exchanged if `transposed`."""
        return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape

    def free(self, lhs: Shape, rhs: Shape) -> Free:
        return Free((times(lhs[:-2]), *lhs[-2:], *rhs[-2:]))

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        batch = lhs.shape[:-2]
        a, b = (ext.reshape(x, (times(batch), *x.shape[-2:])) for x in (lhs, rhs))
        product = call.batch_dot(a, b, self.transpose_a, self.transpose_b)
        return ext.reshape(product, (*batch, *product.shape[-2:]))


@op("khatri_rao", variadic="num_args")
class KhatriRao(Op):
    """All products of a row of each matrix, column by column, those of the last one fastest."""

    num_args: int = count(doc="How many matrices there are.")

    def shapes(self, s: Shapes) -> None:
        parts = self.arguments()
        first = next((n for n in (*parts, "output") if s[n] is not None), parts[0])
        s.rank(first, 2)
        s.alike((*parts, "output"), 2, 0)
        s["output"] = (times([s.need(n)[0] for n in parts]), UNKNOWN)

    def forward(self, *args: Expr) -> Expr:
        found = args[0]
        for each in args[1:]:
            m, n, columns = found.shape[0], each.shape[0], found.shape[1]
            left = ext.broadcast_to(ext.reshape(found, (m, 1, columns)), (m, n, columns))
            right = ext.broadcast_to(ext.reshape(each, (1, n, columns)), (m, n, columns))
            found = ext.reshape(left * right, (m * n, columns))
        return found if len(args) > 1 else fn.identity(found)
