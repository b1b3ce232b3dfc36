"""Operators that take diagonals and triangles out of matrices, and make matrices of them."""

from __future__ import annotations

import math

import numpy as np

from gnomon.dtype import float64, int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.host import Array
from gnomon.ops.infer import UNKNOWN, Shape, Shapes, one_dtype, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import param


def of_matrices(s: Shapes) -> Shape:
    """The shape of A: square matrices along the last two axes."""
    shape = s.need("A")
    if len(shape) < 2 or (UNKNOWN not in shape[-2:] and shape[-1] != shape[-2]):
        raise s.refuse("A", "square matrices along the last two axes", f"shape {shape}")
    return shape


class Pieces(Op):
    """What taking out and putting in share: the places of the elements in a matrix."""

    offset: int = param(0, doc="Which diagonal: above the main one, or below it if negative.")
    types = one_dtype(kinds="f")

    def count(self, n: int) -> int:
        """How many such elements a matrix of `n` rows has."""
        raise NotImplementedError(f"{self.name}: says nothing of count")

    def places(self, n: int) -> Expr:
        """Where they lie, in order, in a matrix of `n` rows in row-major order."""
        raise NotImplementedError(f"{self.name}: says nothing of places")

    def side(self, count: int) -> int:
        """The rows of a matrix with so many such elements; -1 where there is none."""
        raise NotImplementedError(f"{self.name}: says nothing of side")

    def among(self, batch: Shape, n: int) -> Expr:
        """Where those of a batch of matrices lie among the elements of all of them."""
        shape = (*batch, self.count(n))
        first = ext.reshape(ext.iota((times(batch),)) * (n * n), (*batch, 1))
        places = ext.reshape(self.places(n), (*[1] * len(batch), shape[-1]))
        return ext.broadcast_to(first, shape) + ext.broadcast_to(places, shape)

    def taken(self, A: Expr) -> Expr:
        """The elements of the matrices, in a row each."""
        return ext.take(ext.reshape(A, (times(A.shape),)), self.among(A.shape[:-2], A.shape[-1]))

    def put(self, A: Expr, n: int) -> Expr:
        """Matrices of `n` rows with such elements, 0 elsewhere."""
        shape = (*A.shape[:-1], n, n)
        found = ext.take_grad(self.among(A.shape[:-1], n), A, times(shape), once=True)
        return ext.reshape(found, shape)


class Take(Pieces):
    """Elements out of matrices."""

    def shapes(self, s: Shapes) -> None:
        shape = of_matrices(s)
        n = max(shape[-2:])
        count = UNKNOWN if n == UNKNOWN else self.count(n)
        if count == 0 and n:
            raise s.refuse("offset", f"a diagonal of {n} rows", self.offset)
        s["output"] = (*shape[:-2], count)

    def forward(self, A: Expr) -> Expr:
        return self.taken(A)

    def gradient(self, grad: Expr, A: Expr) -> Expr:
        return self.put(grad, A.shape[-1])


class Make(Pieces):
    """Matrices out of elements."""

    def shapes(self, s: Shapes) -> None:
        shape = s.need("A")
        if not shape:
            raise s.refuse("A", "axes", "none")
        n = UNKNOWN if shape[-1] == UNKNOWN else self.side(shape[-1])
        if n < 0 and shape[-1] != UNKNOWN:
            raise s.refuse("A", "as many elements as a triangle has", f"shape {shape}")
        s["output"] = (*shape[:-1], n, n)

    def forward(self, A: Expr) -> Expr:
        return self.put(A, self.side(A.shape[-1]))

    def gradient(self, grad: Expr) -> Expr:
        return self.taken(grad)


class Diagonal(Pieces):
    """The elements of a diagonal."""

    def count(self, n: int) -> int:
        return max(n - abs(self.offset), 0)

    def places(self, n: int) -> Expr:
        first = max(-self.offset, 0) * n + max(self.offset, 0)
        return ext.iota((self.count(n),)) * (n + 1) + first

    def side(self, count: int) -> int:
        return count + abs(self.offset)


class Triangle(Pieces):
    """The elements of a triangle, row by row of its lower form."""

    lower: bool = param(True, doc="The lower triangle, which counts where `offset` is 0.")

    @property
    def below(self) -> bool:
        """Whether it is a lower triangle."""
        return self.offset < 0 or (self.offset == 0 and self.lower)

    def count(self, n: int) -> int:
        size = max(n - abs(self.offset), 0)
        return size * (size + 1) // 2

    def places(self, n: int) -> Expr:
        each = cast(ext.iota((self.count(n),)), float64)
        long = fn.floor((fn.sqrt(each * 8.0 + 1.0) - 1.0) * 0.5)  # exact: no root is that near
        short = each - long * (long + 1.0) * 0.5
        long = long + float(abs(self.offset))
        return cast(long * float(n) + short if self.below else short * float(n) + long, int64)

    def side(self, count: int) -> int:
        rows = (math.isqrt(8 * count + 1) - 1) // 2
        return rows + abs(self.offset) if rows * (rows + 1) // 2 == count else -1

    def reference(self, A: Array) -> Array:
        """As NumPy names the places."""
        made = isinstance(self, Make)
        n = self.side(A.shape[-1]) if made else A.shape[-1]
        long, short = np.tril_indices(n, -abs(self.offset))
        rows, columns = (long, short) if self.below else (short, long)
        if not made:
            return A[..., rows, columns]
        found = np.zeros((*A.shape[:-1], n, n))
        found[..., rows, columns] = A
        return found


@op("_linalg_extractdiag", inputs=("A",), aliases=("linalg_extractdiag",))
class ExtractDiagonal(Take, Diagonal):
    """A diagonal of each matrix."""

    cases = (case((2, 3, 3)), case((3, 3), offset=1), case((2, 4, 4), offset=-2))

    def reference(self, A: Array) -> Array:
        return np.diagonal(A, self.offset, -2, -1)


@op("_linalg_makediag", inputs=("A",), aliases=("linalg_makediag",))
class MakeDiagonal(Make, Diagonal):
    """Matrices of diagonals, 0 elsewhere."""

    cases = (case((2, 3)), case((3,), offset=1), case((2, 1), offset=-2))

    def reference(self, A: Array) -> Array:
        rows = [np.diag(a, self.offset) for a in A.reshape(-1, A.shape[-1])]
        return np.stack(rows).reshape(*A.shape[:-1], *rows[0].shape)


@op("_linalg_extracttrian", inputs=("A",), aliases=("linalg_extracttrian",))
class ExtractTriangle(Take, Triangle):
    """A triangle of each matrix, in a row."""

    cases = (case((2, 3, 3)), case((3, 3), lower=False), case((2, 4, 4), offset=-2))


@op("_linalg_maketrian", inputs=("A",), aliases=("linalg_maketrian",))
class MakeTriangle(Make, Triangle):
    """Matrices of triangles, 0 elsewhere."""

    cases = (case((2, 6)), case((3,), lower=False), case((2, 1), offset=-2))


_DIAGONAL = ExtractDiagonal()


@op("_linalg_sumlogdiag", inputs=("A",), aliases=("linalg_sumlogdiag",))
class SumOfLogarithmsOfDiagonal(Op):
    """The sum of the logarithms of the diagonal of each matrix."""

    cases = (case((2, 3, 3), low=0.5), case((2, 2), low=0.5), case((0, 2, 2)))
    types = one_dtype(kinds="f")

    def shapes(self, s: Shapes) -> None:
        s["output"] = of_matrices(s)[:-2] or (1,)

    def forward(self, A: Expr) -> Expr:
        found = ext.reduce_with_axis("sum", fn.log(_DIAGONAL.taken(A)), A.ndim - 2)
        return ext.reshape(found, A.shape[:-2] or (1,))

    def gradient(self, grad: Expr, A: Expr) -> Expr:
        diagonal = _DIAGONAL.taken(A)
        wide = ext.broadcast_to(ext.reshape(grad, (*A.shape[:-2], 1)), diagonal.shape)
        return _DIAGONAL.put(wide / diagonal, A.shape[-1])

    def reference(self, A: Array) -> Array:
        return np.reshape(np.log(np.diagonal(A, 0, -2, -1)).sum(-1), A.shape[:-2] or (1,))
