"""Matrix products by the fastest way for each: oneDNN, OpenBLAS, or code of our own.

With AVX-512 most of float32 goes to code of our own, `tile.py`. Of what is left, measured on one
core, in microseconds, oneDNN before OpenBLAS: (512 512 512) 1,590, 1,640; a matrix times a vector
(1 1024 1024) 317, 127. A step of oneDNN takes 100 to 370 us to make, for each size anew; one of
OpenBLAS or by tiles 25.
"""

from __future__ import annotations

from typing import Any

from gnomon import dtype as dtypes
from gnomon.runtime.libraries import blas, dnn, tile
from gnomon.runtime.libraries.product import Product, product


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
    """A step that computes C = alpha op(A) op(B) + beta C; `how` is what `product` takes.

    Also bfloat16 and float16 where the processor has them. The operands lie at `a`, `b`, `c`, and
    `keep` is held by the step; its `.bind(a, b, c)` changes the addresses.

    Raises:
        DTypeError: `supports(dtype)` is false.
        ParamError: a size that is negative or too large; a size of 0 in 16 bits.
    """
    made = step(product(dtype, m, n, k, **how), keep)
    made.bind(a, b, c)
    return made


def step(p: Product, keep: Any) -> blas.GemmStep | dnn.DnnStep | tile.TileStep:
    """A step that computes a product, of operands that `bind` names."""
    if tile.fits(p):
        return tile.step(p, keep)
    fast = min(p.m, p.n) > 1 and min(p.k, p.batch) > 0 and dnn.supports_matmul(p.dtype)
    if not fast and blas.supports(p.dtype):
        return blas.step(p, keep)
    made = dnn.matmul(p)
    made.keep = (made.keep, keep)
    return made
