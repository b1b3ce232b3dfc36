"""Matrix products by OpenBLAS as steps, cut into tasks for the pool.

OpenBLAS computes on the thread that calls it, and the product is cut here: into pieces of the
larger axis of C, and matrices of a batch. Its own threads are off: they wait for each other inside
a product, so its callback for foreign pools would hang where a pool does tasks in sequence (nested,
busy, forked). Cutting costs little, since every task packs only what it needs.

The operands of a product's step are those that `Gemm` or `Gemv` in blas_code.py name.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from pathlib import Path
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, complaint
from gnomon.ground.lock import first_use
from gnomon.native.serve import raw_code
from gnomon.native.words import double_bits
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution import threads
from gnomon.runtime.ffi import symbol
from gnomon.runtime.libraries.blas_code import Gemm, Gemv, many
from gnomon.runtime.libraries.product import Product, ProductStep
from gnomon.runtime.once import once

_GRAIN = 1_000_000  # multiply-adds below which another thread does not pay
_GRAIN_VECTOR = 200_000  # the same for a matrix times a vector, which waits for memory
_EDGE = 16  # rows and columns that OpenBLAS's kernels take at once
_KINDS = (dtypes.float32, dtypes.float64)


@functools.cache
def library() -> ctypes.CDLL | None:
    """OpenBLAS without threads of its own, or None where the wheel is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    folders = spec.submodule_search_locations if spec else None
    files = sorted(Path(folders[0], "lib").glob("libscipy_openblas*")) if folders else []
    if not files:
        return None
    with first_use:
        return _loaded(str(files[0]))


def _loaded(file: str) -> ctypes.CDLL | None:
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read once, while it is loaded
    try:
        return ctypes.CDLL(file)
    except OSError:
        return None
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]
        if before is not None:
            os.environ["OPENBLAS_NUM_THREADS"] = before


@once
def _code() -> jit.Module | None:
    loaded = library()
    names = ("sgemm", "dgemm", "sgemv", "dgemv")
    symbols = {} if loaded is None else {n: symbol(loaded, f"scipy_cblas_{n}") for n in names}
    return raw_code(many, symbols=symbols) if symbols and all(symbols.values()) else None


def supports(dtype: Any) -> bool:
    """Whether `step` takes this dtype: float32 and float64 where OpenBLAS is installed."""
    return dtypes.of(dtype) in _KINDS and _code() is not None


def _turned(p: Product) -> bool:
    """Whether B is the matrix of a matrix-vector product, and A the vector."""
    return p.m == 1 and p.n > 1 and p.k > 0


def _operands(p: Product) -> dict[str, int]:
    """The words of the block by name, addresses excepted."""
    both = {"k": p.k, "size": p.dtype.size}
    both |= {"alpha": double_bits(p.alpha), "beta": double_bits(p.beta)}
    both |= _vector(p) if p.is_vector and p.k else _matrix(p)
    return both | _cut(p, both.pop("axis"))


def _matrix(p: Product) -> dict[str, int]:
    by_rows = p.m >= p.n
    return {
        "gemv": 0, "m": p.m, "n": p.n, "ta": p.transpose_a, "tb": p.transpose_b, "lda": p.lda,
        "ldb": p.ldb, "ldc": p.ldc, "sa": p.sa, "sb": p.sb, "sc": p.sc,
        "by_rows": by_rows, "axis": p.m if by_rows else p.n,
    }  # fmt: skip


def _vector(p: Product) -> dict[str, int]:
    if _turned(p):
        return {
            "gemv": 1, "m": p.n, "ta": not p.transpose_b, "lda": p.ldb, "sa": p.sb,
            "incx": p.lda if p.transpose_a else 1, "sb": p.sa, "incy": 1, "sc": p.sc,
            "axis": p.n,
        }  # fmt: skip
    return {
        "gemv": 1, "m": p.m, "ta": p.transpose_a, "lda": p.lda, "sa": p.sa,
        "incx": 1 if p.transpose_b else p.ldb, "sb": p.sb, "incy": p.ldc, "sc": p.sc,
        "axis": p.m,
    }  # fmt: skip


def _cut(p: Product, axis: int) -> dict[str, int]:
    """Pieces of the axis for each matrix; matrices of a batch for each task."""
    grain = _GRAIN_VECTOR if p.is_vector else _GRAIN
    pays = max(1, p.batch * p.work // grain)
    wanted = min(threads.num_threads(), pays, -(-max(1, p.work) // grain))
    piece = -(-axis // wanted)
    piece = max(1, -(-piece // _EDGE) * _EDGE if wanted > 1 else piece)
    parts = max(1, -(-axis // piece))
    units = parts * p.batch if p.m and p.n else 0
    each = max(1, -(-units // min(4 * threads.num_threads(), pays))) if parts == 1 else 1
    return {"parts": parts, "piece": piece, "units": units, "each": each}


class GemmStep(ProductStep):
    """A matrix product, or a batch of them."""

    __slots__ = ("_turned",)

    def __init__(self, code: jit.Module, product: Product, keep: Any) -> None:
        operands = _operands(product)
        names = (Gemv if operands["gemv"] else Gemm).fields
        tasks = -(-operands["units"] // operands["each"])
        values = [int(operands.get(name, 0)) for name in names]
        self._turned = _turned(product)
        super().__init__(product, code.address("many"), tasks, values, (code, keep))

    def bind(self, a: int, b: int, c: int) -> None:
        words = self._words.words
        words[3], words[4], words[5] = (b, a, c) if self._turned else (a, b, c)


def step(product: Product, keep: Any = None) -> GemmStep:
    """A step that computes a product; `keep` is held by it.

    >>> import numpy as np
    >>> from gnomon.runtime.libraries.product import product
    >>> a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.empty((2, 4))
    >>> made = step(product("float64", 2, 4, 3))
    >>> made.bind(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    >>> made.run()
    >>> float(c.min()), float(c.max())
    (3.0, 3.0)

    Raises:
        DTypeError: `supports(product.dtype)` is false.
    """
    code = _code()
    if code is None or product.dtype not in _KINDS:
        expected = "float32 or float64 with OpenBLAS"
        raise DTypeError(complaint("gemm_step", "dtype", expected, product.dtype.name))
    return GemmStep(code, product, keep)
