"""The calls of cuBLAS that gnomon makes: the surface that the real and the simulated share."""

from __future__ import annotations

from typing import Protocol

from gnomon.dtype import DType
from gnomon.ground.record import record


@record()
class Gemm:
    """C (m, n) = alpha op(A) (m, k) op(B) (k, n) + beta C, `batch` times, by columns.

    Columns are `lda`, `ldb`, `ldc` elements apart, matrices of a batch `sa`, `sb`, `sc`. Sums of 16
    bits are made in 32. With `beta` 0, C is only written.
    """

    dtype: DType
    m: int
    n: int
    k: int
    transpose_a: bool
    transpose_b: bool
    alpha: float
    beta: float
    lda: int
    ldb: int
    ldc: int
    batch: int
    sa: int
    sb: int
    sc: int


class Blas(Protocol):
    """What is asked of cuBLAS, in the context entered by the calling thread."""

    def create(self) -> int:
        """A new handle."""

    def destroy(self, handle: int) -> None:
        """Forgets a handle; its work is still done."""

    def set_stream(self, handle: int, stream: int) -> None:
        """Products are given to this stream from now on; the workspace is forgotten."""

    def set_workspace(self, handle: int, address: int, nbytes: int) -> None:
        """Memory that products may use while they are computed."""

    def gemm(self, handle: int, what: Gemm, a: int, b: int, c: int) -> None:
        """Computes a product when the stream comes to it."""
