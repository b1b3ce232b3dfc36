"""Matrix products by whoever does each fastest: oneDNN, OpenBLAS, or code of our own.

Measured on one core, float32, in microseconds, oneDNN before OpenBLAS: (32 64 128) 4.3, 6.4;
(128 128 784) 137, 181; (1024 64 64) 42, 60; (512 512 512) 1,590, 1,640; a matrix times a vector
(1 1024 1024) 317, 127. A step of oneDNN takes about 100 us to make, one of OpenBLAS 30. What is
small goes to `tile.py`.
"""

from __future__ import annotations

from typing import Any

from gnomon import dtype as dtypes
from gnomon.runtime import blas, dnn, tile


def supports(dtype: Any) -> bool:
    """Whether a library multiplies matrices of this dtype here.

    >>> supports("float32"), supports("int32")
    (True, False)
    """
    of = dtypes.of(dtype)
    return blas.supports(of) or dnn.supports_matmul(of)


def gemm_step(
    dtype: Any, m: int, n: int, k: int, a: int, b: int, c: int, *, keep: Any = None, **how: Any
) -> blas.GemmStep | dnn.DnnStep | tile.TileStep:
    """A step that computes C = alpha op(A) op(B) + beta C; takes what `blas.gemm_step` takes.

    Also bfloat16 and float16 where the processor has them. `.bind(a, b, c)` of the result changes
    the addresses.

    Raises:
        DTypeError: `supports(dtype)` is false.
        ParamError: a size that is negative or too large; a size of 0 in 16 bits.
    """
    of = dtypes.of(dtype)
    turned = (how.get("transpose_a", False), how.get("transpose_b", False))
    batch, distances = how.get("batch", 1), (how.get("lda"), how.get("ldb"), how.get("ldc"))
    if tile.fits(of, m, n, k, batch, *turned):
        blas.check_sizes(m, n, k, batch, *turned, distances)
        own = tile.step(m, n, k, keep=keep, **how)
        own.bind(a, b, c)
        return own
    fast = min(m, n) > 1 and min(k, batch) > 0 and dnn.supports_matmul(of)
    if not fast and blas.supports(of):
        return blas.gemm_step(of, m, n, k, a, b, c, keep=keep, **how)
    blas.check_sizes(m, n, k, batch, *turned, distances)
    step = dnn.matmul(of, m, n, k, **how)
    step.bind(a, b, c)
    step.keep = (step.keep, keep)
    return step
