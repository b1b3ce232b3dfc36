"""The calls of cuBLAS and cuBLASLt that gnomon makes: what the real and the simulated share."""

from __future__ import annotations

from typing import Any, Protocol

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

    @property
    def stored(self) -> tuple[tuple[int, int, int, int], ...]:
        """A, B and C in memory: rows, columns, elements from column to column, in the batch."""
        m, n, k = self.m, self.n, self.k
        return (
            (*((k, m) if self.transpose_a else (m, k)), self.lda, self.sa),
            (*((n, k) if self.transpose_b else (k, n)), self.ldb, self.sb),
            (m, n, self.ldc, self.sc),
        )


@record()
class Matmul:
    """A product, plus a number for each row of C where it is `biased`, then maybe `relu`."""

    gemm: Gemm
    biased: bool
    relu: bool


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


class Lt(Protocol):
    """What is asked of cuBLASLt, in the context entered by the calling thread.

    A handle of cuBLAS is one of cuBLASLt as well; its stream and its workspace mean nothing here.
    """

    def plan(self, handle: int, what: Matmul, alignment: int, nbytes: int) -> Any | None:
        """How to compute a product in at most `nbytes` of workspace: the library's guess.

        All addresses are to be multiples of `alignment`. None where the library has no way.
        """

    def matmul(
        self,
        handle: int,
        plan: Any,
        operands: tuple[int, int, int, int],
        workspace: tuple[int, int],
        stream: int,
    ) -> None:
        """Computes a product when the stream comes to it.

        `operands` are the addresses of A, B, C and the numbers for C's rows (0 where there are
        none), `workspace` an address and bytes.
        """
