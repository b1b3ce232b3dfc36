"""Operators that take diagonals and triangles out of matrices, and make matrices of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import UNKNOWN, Shapes, one_dtype
from gnomon.ops.op import op
from gnomon.ops.param import param

Places = tuple[Sequence[int], Sequence[int]]


class Pieces(HostOp):
    """What taking out and putting in share: the places of the elements in a matrix."""

    offset: int = param(0, doc="Which diagonal: above the main one, or below it if negative.")
    types = one_dtype(kinds="f")

    def places(self, n: int) -> tuple[Array, Array]:
        """Rows and columns of the elements, in order, of a matrix of `n` rows."""
        raise NotImplementedError

    def side(self, count: int) -> int:
        """The rows of a matrix with so many such elements; -1 where there is none."""
        raise NotImplementedError

    def taken(self, A: Array) -> Array:
        """The elements of the matrices, in a row each."""
        rows, columns = self.places(A.shape[-1])
        return A[..., rows, columns]

    def put(self, A: Array) -> Array:
        """Matrices of such elements, 0 elsewhere."""
        n = self.side(A.shape[-1])
        found = np.zeros((*A.shape[:-1], n, n), A.dtype)
        rows, columns = self.places(n)
        found[..., rows, columns] = A
        return found


class Take(Pieces):
    """Elements out of matrices."""

    def shapes(self, s: Shapes) -> None:
        shape = s.need("A")
        if len(shape) < 2 or (UNKNOWN not in shape[-2:] and shape[-1] != shape[-2]):
            raise s.refuse("A", "square matrices along the last two axes", f"shape {shape}")
        n = max(shape[-2:])
        if n == UNKNOWN:
            s["output"] = (*shape[:-2], UNKNOWN)
            return
        count = len(self.places(n)[0])
        if count == 0 and n:
            raise s.refuse("offset", f"a diagonal of {n} rows", self.offset)
        s["output"] = (*shape[:-2], count)

    def compute(self, A: Array) -> Array:
        return self.taken(A)

    reference = compute

    def gradient(self, grad: Array, A: Array) -> Array:
        found = np.zeros_like(A)
        rows, columns = self.places(A.shape[-1])
        found[..., rows, columns] = grad
        return found


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

    def compute(self, A: Array) -> Array:
        return self.put(A)

    reference = compute

    def gradient(self, grad: Array) -> Array:
        return self.taken(grad)


class Diagonal(Pieces):
    """The elements of a diagonal."""

    def places(self, n: int) -> tuple[Array, Array]:
        first = np.arange(max(n - abs(self.offset), 0))
        return first + max(-self.offset, 0), first + max(self.offset, 0)

    def side(self, count: int) -> int:
        return count + abs(self.offset)


class Triangle(Pieces):
    """The elements of a triangle, row by row of its lower form."""

    lower: bool = param(True, doc="The lower triangle, which counts where `offset` is 0.")

    @property
    def below(self) -> bool:
        """Whether it is a lower triangle."""
        return self.offset < 0 or (self.offset == 0 and self.lower)

    def places(self, n: int) -> tuple[Array, Array]:
        size, away = max(n - abs(self.offset), 0), abs(self.offset)
        long, short = np.tril_indices(size)
        return (long + away, short) if self.below else (short, long + away)

    def side(self, count: int) -> int:
        rows = (math.isqrt(8 * count + 1) - 1) // 2
        return rows + abs(self.offset) if rows * (rows + 1) // 2 == count else -1


@op("_linalg_extractdiag", inputs=("A",), aliases=("linalg_extractdiag",))
class ExtractDiagonal(Take, Diagonal):
    """A diagonal of each matrix."""

    cases = (case((2, 3, 3)), case((3, 3), offset=1), case((2, 4, 4), offset=-2))


@op("_linalg_makediag", inputs=("A",), aliases=("linalg_makediag",))
class MakeDiagonal(Make, Diagonal):
    """Matrices of diagonals, 0 elsewhere."""

    cases = (case((2, 3)), case((3,), offset=1), case((2, 1), offset=-2))


@op("_linalg_extracttrian", inputs=("A",), aliases=("linalg_extracttrian",))
class ExtractTriangle(Take, Triangle):
    """A triangle of each matrix, in a row."""

    cases = (case((2, 3, 3)), case((3, 3), lower=False), case((2, 4, 4), offset=-2))


@op("_linalg_maketrian", inputs=("A",), aliases=("linalg_maketrian",))
class MakeTriangle(Make, Triangle):
    """Matrices of triangles, 0 elsewhere."""

    cases = (case((2, 6)), case((3,), lower=False), case((2, 1), offset=-2))
