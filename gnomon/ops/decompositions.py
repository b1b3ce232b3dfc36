"""nd.linalg: decompositions, inverses and determinants, by LAPACK, mostly through NumPy.

The last two axes are matrices, those before them a batch. A symmetric matrix is given by its lower
triangle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon.base import GnomonError, complaint
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import UNKNOWN, Shape, Shapes, one_dtype, zero_is_unknown
from gnomon.ops.op import op
from gnomon.ops.param import param
from gnomon.runtime.libraries import lapack
from gnomon.runtime.libraries.lapack import turned

FLAT = (1,)  # MXNet's shape of a number alone


def mirrored(a: Array) -> Array:
    """Matrices with the lower triangle on both sides."""
    low = lapack.lower(a)
    found = low + turned(low)
    places = np.arange(a.shape[-1])
    found[..., places, places] = a[..., places, places]
    return found


def spd(n: int, batch: int = 2) -> Any:
    """Symmetric positive definite matrices, for cases."""
    root = np.random.default_rng(3).normal(size=(batch, n, n))
    # not by BLAS, which ends the process where it finds no memory: this runs at import
    return (root[:, :, None] * root[:, None]).sum(-1) + n * np.eye(n)


class Matrices(HostOp):
    """What decompositions share: square matrices of floating point."""

    square = True
    types = one_dtype(kinds="f")

    def shapes(self, s: Shapes) -> None:
        s.same()
        self.checked(s)

    def checked(self, s: Shapes) -> Shape:
        """The shape of A: two axes at least, of one size where matrices are square."""
        shape = s.need("A")
        if len(shape) < 2:
            raise s.refuse("A", "matrices along the last two axes", f"shape {shape}")
        if self.square and UNKNOWN not in shape[-2:] and shape[-1] != shape[-2]:
            raise s.refuse("A", "square matrices", f"shape {shape}")
        return shape

    def by(self, routine: Callable[..., Array], *operands: Any) -> Array:
        """What a routine gives of invertible matrices.

        Raises:
            GnomonError: a matrix is singular.
        """
        try:
            return routine(*operands)
        except np.linalg.LinAlgError:
            raise self.refused("invertible matrices", "a singular one") from None

    def refused(self, expected: str, got: str) -> GnomonError:
        """The error for a matrix that cannot be worked with."""
        return GnomonError(complaint(self.name, "A", expected, got))


class Triangular(Matrices):
    """What Cholesky's operators share: the triangle that counts, turned where it is the upper."""

    lower: bool = param(True, doc="Whether the triangle is the lower one.")

    def low(self, a: Array) -> Array:
        """Matrices with the triangle below, and the other way round."""
        return a if self.lower else np.ascontiguousarray(turned(a))


@op("_linalg_potrf", inputs=("A",), aliases=("linalg_potrf",))
class Cholesky(Triangular):
    """The lower triangular L with A = L L^T, or the upper one with A = L^T L."""

    cases = (case(spd(3), differentiable=()), case(spd(1)), case((0, 2, 2)),
             case(spd(2), lower=False, differentiable=()))  # fmt: skip

    def compute(self, A: Array, *, room: list[Array]) -> Array:
        try:
            return self.low(lapack.cholesky(self.low(A), room[0]))
        except np.linalg.LinAlgError:
            raise self.refused("positive definite matrices", "another") from None

    def reference(self, A: Array) -> Array:
        return self.low(np.asarray(np.linalg.cholesky(self.low(A))))

    def gradient(self, grad: Array, output: Array) -> Array:
        root = self.low(output)
        inverse = self.by(lapack.lower_inverse, root)
        through = lapack.turned_product(root, lapack.lower(self.low(grad)))
        inner = lapack.turned_product(inverse, mirrored(through))
        return turned(lapack.turned_product(inverse, turned(inner))) / 2  # it is symmetric


@op("_linalg_potri", inputs=("A",), aliases=("linalg_potri",))
class InverseOfCholesky(Triangular):
    """The inverse of A A^T, of a lower triangular A, or of A^T A, of an upper one."""

    cases = (case(np.tril(spd(3))), case(np.tril(spd(2, 1))), case((0, 2, 2)),
             case(np.triu(spd(2)), lower=False))  # fmt: skip

    def compute(self, A: Array) -> Array:
        inverse = self.by(lapack.lower_inverse, self.low(A))
        return lapack.turned_product(inverse, inverse)

    def reference(self, A: Array) -> Array:
        return np.asarray(np.linalg.inv(self.low(A) @ turned(self.low(A))))

    def gradient(self, grad: Array, A: Array, output: Array) -> Array:
        # of X = inverse(A A^T): the gradient of A A^T is -X grad X
        through = lapack.product(lapack.product(output, grad + turned(grad)), output)
        return self.low(-lapack.lower(lapack.product(through, lapack.lower(self.low(A)))))


@op("_linalg_inverse", inputs=("A",), aliases=("linalg_inverse", "_npi_inv"))
class Inverse(Matrices):
    """The inverse of each matrix."""

    cases = (case(spd(3)), case([[0.0, 2.0], [1.0, 0.0]]), case((0, 2, 2)))

    def compute(self, A: Array) -> Array:
        return self.by(lapack.inverse, A)

    def reference(self, A: Array) -> Array:
        return np.linalg.inv(A)

    def gradient(self, grad: Array, output: Array) -> Array:
        through = lapack.product(turned(output), grad)
        return -lapack.product(through, turned(output))


class Numbers(Matrices):
    """What gives numbers for each matrix: `compute` in the shape of the batch."""

    def shapes(self, s: Shapes) -> None:
        for name in self.outputs():
            s[name] = self.checked(s)[:-2] or self.alone()

    def alone(self) -> Shape:
        """The shape of a number where there is no batch."""
        return FLAT if zero_is_unknown() else ()

    def run_on(self, ctx: Any, arrays: Sequence[Array], req: Any, dests: Sequence[Array]) -> None:
        batch = arrays[0].shape[:-2]
        super().run_on(ctx, arrays, req, [memory.reshape(batch) for memory in dests])

    def each(self, numbers: Array, A: Array) -> Array:
        """Numbers with two further axes, as the matrices have."""
        return numbers.reshape(*A.shape[:-2], 1, 1)

    def inverse(self, A: Array) -> Array:
        """The transposed inverse; infinite where there is none."""
        try:
            return turned(lapack.inverse(A))
        except np.linalg.LinAlgError:
            one = [np.linalg.inv(a) if np.linalg.det(a) else a + np.inf for a in lapack.flat(A)]
            return turned(np.reshape(one, A.shape))


@op("_linalg_det", inputs=("A",), outputs=("output0",), aliases=("linalg_det", "_npi_det"))
class Determinant(Numbers):
    """The determinant of each matrix."""

    cases = (case(spd(3)), case([[0.0, 2.0], [1.0, 0.0]]), case((0, 2, 2)))

    def compute(self, A: Array) -> Array:
        sign, logarithm = lapack.slogdet(A)
        return sign * np.exp(logarithm)

    def reference(self, A: Array) -> Array:
        return np.reshape(np.linalg.det(A), A.shape[:-2] or FLAT)

    def gradient(self, grad: Array, A: Array, output0: Array) -> Array:
        singular = self.each(output0, A) == 0
        found = self.each(grad * output0, A) * self.inverse(A)
        return np.where(singular, 0, found)


@op(
    "_linalg_slogdet",
    inputs=("A",),
    outputs=("sign", "logabsdet"),
    aliases=("linalg_slogdet", "_npi_slogdet"),
)
class SignAndLogarithmOfDeterminant(Numbers):
    """The sign of the determinant, and the logarithm of its absolute value."""

    numbers_outputs = True
    cases = (case(spd(3)), case([[0.0, 2.0], [1.0, 0.0]]), case((0, 2, 2)))

    def compute(self, A: Array) -> tuple[Array, ...]:
        sign, logarithm = lapack.slogdet(A)
        return np.where(np.isnan(logarithm), A.dtype.type(0), sign), logarithm  # as MXNet

    def reference(self, A: Array) -> tuple[Array, Array]:
        sign, logarithm = np.linalg.slogdet(A)
        shape = A.shape[:-2] or FLAT
        return np.reshape(sign, shape), np.reshape(logarithm, shape)

    def gradient(self, grad_logabsdet: Array, A: Array, sign: Array) -> Array:
        singular = self.each(sign, A) == 0
        return np.where(singular, 0, self.each(grad_logabsdet, A) * self.inverse(A))


@op("_linalg_gelqf", inputs=("A",), outputs=("Q", "L"), aliases=("linalg_gelqf",))
class LowerAndOrthonormal(Matrices):
    """Q with orthonormal rows and a lower triangular L with A = L Q, of matrices not taller."""

    square = False
    numbers_outputs = True
    cases = (case((2, 3, 5)), case((2, 2)), case((0, 2, 3)))

    def shapes(self, s: Shapes) -> None:
        shape = self.checked(s)
        if UNKNOWN not in shape[-2:] and shape[-2] > shape[-1]:
            raise s.refuse("A", "no more rows than columns", f"shape {shape}")
        s["Q"] = shape
        s["L"] = (*shape[:-1], shape[-2])
        s["A"] = s.need("Q")

    def compute(self, A: Array) -> tuple[Array, Array]:
        return lapack.orthonormal(A)

    def reference(self, A: Array) -> tuple[Array, Array]:
        q, r = np.linalg.qr(turned(A))
        return turned(q), turned(r)

    def gradient(self, grad_Q: Array, grad_L: Array, Q: Array, L: Array) -> Array:
        inner = lapack.turned_product(L, np.tril(grad_L)) - lapack.product(grad_Q, turned(Q))
        return self.by(lapack.divided, L, grad_Q + lapack.product(mirrored(inner), Q), True)


@op("_linalg_syevd", inputs=("A",), outputs=("U", "L"), aliases=("linalg_syevd",))
class Eigenvalues(Matrices):
    """Eigenvectors as rows of U, and eigenvalues L in ascending order, of symmetric matrices.

    The largest element of each eigenvector is positive.
    """

    numbers_outputs = True
    cases = (case(spd(3), differentiable=()), case(spd(1)), case((0, 2, 2)))

    def shapes(self, s: Shapes) -> None:
        s["U"] = self.checked(s)
        s["L"] = s.need("U")[:-1]
        s["A"] = s.need("U")

    def compute(self, A: Array) -> tuple[Array, Array]:
        rows, values = lapack.eigenvectors(A)
        if rows.size:
            largest = np.abs(rows).argmax(-1)[..., None]
            rows = rows * np.where(np.take_along_axis(rows, largest, -1) < 0, -1, 1)
        return rows, values

    def reference(self, A: Array) -> tuple[Array, Array]:
        return self.compute(A)

    def gradient(self, grad_U: Array, grad_L: Array, U: Array, L: Array) -> Array:
        apart = L[..., :, None] - L[..., None, :]
        away = np.where(apart == 0, 1, apart)
        mixed = np.where(apart == 0, 0, lapack.product(grad_U, turned(U)) / away)
        inner = (mixed + turned(mixed)) / 2 + grad_L[..., None] * np.eye(L.shape[-1])
        return lapack.product(lapack.product(turned(U), inner), U)
