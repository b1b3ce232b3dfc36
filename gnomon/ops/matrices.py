"""nd.linalg: products of matrices, general, symmetric and triangular, and triangular solutions.

The last two axes are matrices, those before them a batch.
"""

from __future__ import annotations

import numpy as np

from gnomon.expr import call, ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.case import case
from gnomon.ops.decompositions import Matrices, spd
from gnomon.ops.host import Array
from gnomon.ops.infer import UNKNOWN, Shapes, one_dtype, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import Axis, param
from gnomon.runtime.libraries import lapack
from gnomon.runtime.libraries.lapack import turned


def product(a: Expr, b: Expr, ta: bool = False, tb: bool = False) -> Expr:
    """The products of two batches of matrices."""
    batch = a.shape[:-2]
    flat = [ext.reshape(x, (times(batch), *x.shape[-2:])) for x in (a, b)]
    made = call.batch_dot(flat[0], flat[1], ta, tb)
    return ext.reshape(made, (*batch, *made.shape[1:]))


def triangle(a: Expr, lower: bool) -> Expr:
    """`a` with 0 on the other side of the diagonal."""
    rows, columns = (ext.iota(a.shape, axis, a.dtype) for axis in (a.ndim - 2, a.ndim - 1))
    kept = fn.ge(rows, columns) if lower else fn.le(rows, columns)
    return fn.where(kept, a, 0)


class Triangular(Op):
    """What triangular products and solutions share."""

    transpose: bool = param(False, doc="Take the transpose of A.")
    rightside: bool = param(False, doc="A stands on the right.")
    lower: bool = param(True, doc="Take the lower triangle of A, else the upper one.")
    alpha: float = param(1.0, doc="Factor of the result.")
    types = one_dtype(kinds="f")

    def shapes(self, s: Shapes) -> None:
        s.same("B", "output")
        shape, other = s.need("B"), s["A"]
        if min(len(shape), len(shape if other is None else other)) < 2:
            raise s.refuse("B", "matrices along the last two axes", f"shape {shape}")
        side = shape[-1 if self.rightside else -2]
        s["A"] = (*shape[:-2], side, side)
        side = s.need("A")[-1]
        free = (UNKNOWN, side) if self.rightside else (side, UNKNOWN)
        s["B"] = (*s.need("A")[:-2], *free)
        s.same("B", "output")


SIDES = (
    case(np.tril(spd(3)), (2, 3, 4)),
    case(spd(2, 1), (1, 3, 2), rightside=True, transpose=True, alpha=2.0),
    case(np.triu(spd(3)), (2, 3, 1), lower=False, transpose=True),
    case(np.triu(spd(3)), (2, 4, 3), lower=False, rightside=True),
)


@op("_linalg_trmm", inputs=("A", "B"), aliases=("linalg_trmm",))
class TriangularProduct(Triangular):
    """`alpha * A B`, or `alpha * B A`, of a triangular A."""

    cases = SIDES

    def forward(self, A: Expr, B: Expr) -> Expr:
        a = triangle(A, self.lower)
        if self.rightside:
            return product(B, a, False, self.transpose) * self.alpha
        return product(a, B, self.transpose) * self.alpha

    def reference(self, A: Array, B: Array) -> Array:
        a = np.tril(A) if self.lower else np.triu(A)
        a = turned(a) if self.transpose else a
        return self.alpha * (B @ a if self.rightside else a @ B)


@op("_linalg_trsm", inputs=("A", "B"), aliases=("linalg_trsm",))
class TriangularSolution(Triangular, Matrices):
    """X of `A X = alpha * B`, or of `X A = alpha * B`, of a triangular A."""

    cases = SIDES

    def solved(self, A: Array, right: Array, turned_once: bool) -> Array:
        """`right` divided by the triangle of A as it stands on the left, or by its transpose."""
        low = A if self.lower else turned(A)
        standing = (self.transpose != self.rightside) == self.lower
        return self.by(lapack.divided, low, right, standing != turned_once)

    def compute(self, A: Array, B: Array) -> Array:
        right = turned(B) if self.rightside else B
        found = self.alpha * self.solved(A, right, False)
        return turned(found) if self.rightside else found

    def reference(self, A: Array, B: Array) -> Array:
        a = np.linalg.inv(np.tril(A) if self.lower else np.triu(A))
        a = turned(a) if self.transpose else a
        return self.alpha * (B @ a if self.rightside else a @ B)

    def gradient(self, grad: Array, A: Array, output: Array) -> tuple[Array, Array]:
        g, x = (turned(grad), turned(output)) if self.rightside else (grad, output)
        back = self.solved(A, g, True)
        to_factor = -back @ turned(x)
        to_a = turned(to_factor) if self.transpose != self.rightside else to_factor
        to_b = self.alpha * (turned(back) if self.rightside else back)
        return (np.tril(to_a) if self.lower else np.triu(to_a)), to_b


class Gemm(Op):
    """What general products share: flags, and the axis along which the rows lie."""

    transpose_a: bool = param(False, doc="Take the transpose of A.")
    transpose_b: bool = param(False, doc="Take the transpose of B.")
    alpha: float = param(1.0, doc="Factor of the product.")
    axis: Axis = param(-2, doc="The axis of the rows; that of the columns is the last one.")
    types = one_dtype(kinds="f")

    def at_end(self, x: Expr, back: bool = False) -> Expr:
        """`x` with its rows on the axis before the last one, or from there where they were."""
        axis = self.axis.of(x.ndim)
        rest = [a for a in range(x.ndim) if a != axis]
        order = [*rest[:-1], axis, rest[-1]]
        order = [order.index(a) for a in range(x.ndim)] if back else order
        return x if order == sorted(order) else ext.transpose(x, order)

    def shapes(self, s: Shapes) -> None:
        a, b = s.need("A"), s.need("B")
        axis = self.axis.of(a)
        if len(a) != len(b) or len(a) < 2 or axis == len(a) - 1:
            expected = "as many axes as A, two or more, of which the last is not `axis`"
            raise s.refuse("B", expected, f"shapes {a} and {b}")
        inner = a[axis if self.transpose_a else -1]
        other = b[-1 if self.transpose_b else axis]
        rest = [k for k in range(len(a) - 1) if k != axis]
        if UNKNOWN != inner != other != UNKNOWN:
            side = "columns" if self.transpose_b else "rows"
            raise s.refuse("B", f"{inner} {side}, as the product with A {a} needs", f"shape {b}")
        if any(UNKNOWN != a[k] != b[k] != UNKNOWN for k in rest):
            raise s.refuse("B", f"as many matrices as A {a} has", f"shape {b}")
        rows = a[-1 if self.transpose_a else axis]
        columns = b[axis if self.transpose_b else -1]
        made = [max(x, y) for x, y in zip(a, b, strict=True)]
        made[axis], made[-1] = rows, columns
        s["output"] = tuple(made)

    def multiplied(self, A: Expr, B: Expr) -> Expr:
        """`alpha * A B`."""
        found = product(self.at_end(A), self.at_end(B), self.transpose_a, self.transpose_b)
        return self.at_end(found * self.alpha, back=True)

    def reference(self, A: Array, B: Array, C: Array | None = None) -> Array:
        a, b = (np.moveaxis(x, self.axis, -2) for x in (A, B))
        a, b = turned(a) if self.transpose_a else a, turned(b) if self.transpose_b else b
        found = self.alpha * np.moveaxis(a @ b, -2, self.axis)
        return found if C is None else found + getattr(self, "beta", 1.0) * C


@op("_linalg_gemm2", inputs=("A", "B"), aliases=("linalg_gemm2",))
class ScaledProduct(Gemm):
    """`alpha * A B`."""

    cases = (
        case((2, 3, 4), (2, 4, 5)),
        case((3, 2), (4, 3), transpose_a=True, transpose_b=True, alpha=0.5),
        case((3, 2, 4), (4, 2, 5), axis=0),
    )

    def forward(self, A: Expr, B: Expr) -> Expr:
        return self.multiplied(A, B)


@op("_linalg_gemm", inputs=("A", "B", "C"), aliases=("linalg_gemm",))
class ProductAndSum(Gemm):
    """`alpha * A B + beta * C`."""

    leading = ("transpose_a", "transpose_b", "alpha", "beta")
    beta: float = param(1.0, doc="Factor of C.")
    cases = (case((2, 3, 4), (2, 4, 5), (2, 3, 5), alpha=2.0, beta=-1.0),)

    def shapes(self, s: Shapes) -> None:
        super().shapes(s)
        s.same("C", "output")

    def forward(self, A: Expr, B: Expr, C: Expr) -> Expr:
        return self.multiplied(A, B) + C * self.beta


@op("_linalg_syrk", inputs=("A",), aliases=("linalg_syrk",))
class SymmetricProduct(Op):
    """`alpha * A A^T`, or with `transpose` `alpha * A^T A`."""

    transpose: bool = param(False, doc="The transpose stands on the left.")
    alpha: float = param(1.0, doc="Factor of the product.")
    cases = (case((2, 3, 4)), case((3, 2), transpose=True, alpha=2.0))
    types = one_dtype(kinds="f")

    def shapes(self, s: Shapes) -> None:
        shape = s.need("A")
        if len(shape) < 2:
            raise s.refuse("A", "matrices along the last two axes", f"shape {shape}")
        side = shape[-1 if self.transpose else -2]
        s["output"] = (*shape[:-2], side, side)

    def forward(self, A: Expr) -> Expr:
        return product(A, A, self.transpose, not self.transpose) * self.alpha

    def reference(self, A: Array) -> Array:
        return self.alpha * (turned(A) @ A if self.transpose else A @ turned(A))
