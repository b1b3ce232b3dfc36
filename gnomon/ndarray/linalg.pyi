# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.ndarray import NDArray
def det(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The determinant of each matrix."""
def extractdiag(A: NDArray, offset: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""A diagonal of each matrix."""
def extracttrian(A: NDArray, offset: int = 0, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""A triangle of each matrix, in a row."""
def gelqf(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> list[NDArray]:
    r"""Q with orthonormal rows and a lower triangular L with A = L Q, of matrices not taller."""
def gemm(A: NDArray, B: NDArray | None = ..., C: NDArray | None = ..., transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0, axis: int = -2, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A B + beta * C`."""
def gemm2(A: NDArray, B: NDArray | None = ..., transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A B`."""
def inverse(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of each matrix."""
def makediag(A: NDArray, offset: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Matrices of diagonals, 0 elsewhere."""
def maketrian(A: NDArray, offset: int = 0, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Matrices of triangles, 0 elsewhere."""
def potrf(A: NDArray, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The lower triangular L with A = L L^T, or the upper one with A = L^T L."""
def potri(A: NDArray, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of A A^T, of a lower triangular A, or of A^T A, of an upper one."""
def slogdet(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> list[NDArray]:
    r"""The sign of the determinant, and the logarithm of its absolute value."""
def sumlogdiag(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum of the logarithms of the diagonal of each matrix."""
def syevd(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> list[NDArray]:
    r"""Eigenvectors as rows of U, and eigenvalues L in ascending order, of symmetric matrices."""
def syrk(A: NDArray, transpose: bool = False, alpha: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A A^T`, or with `transpose` `alpha * A^T A`."""
def trmm(A: NDArray, B: NDArray | None = ..., transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A B`, or `alpha * B A`, of a triangular A."""
def trsm(A: NDArray, B: NDArray | None = ..., transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""X of `A X = alpha * B`, or of `X A = alpha * B`, of a triangular A."""
