"""Matrix products by OpenBLAS as steps, cut into tasks for the pool.

OpenBLAS computes on the thread that calls it, and the product is cut here: into pieces of the
larger axis of C, and matrices of a batch. Its own threads are off: they wait for each other inside
a product, so its callback for foreign pools would hang where a pool does tasks in sequence (nested,
busy, forked). Cutting costs little, since every task packs only what it needs.

A product's block, all words int64: `[function, operands, tasks]` for the pool, then the operands
as `GEMM` or `GEMV` in blas_code.py name them. `GemmStep.bind` writes the three addresses and
nothing else.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, ParamError, complaint
from gnomon.dtype import DType
from gnomon.runtime import blas_code, jit, objects, threads
from gnomon.runtime.native import Block, symbol
from gnomon.runtime.once import once
from gnomon.runtime.program import Step, estimated

_GRAIN = 1_000_000  # multiply-adds below which another thread does not pay
_GRAIN_VECTOR = 200_000  # the same for a matrix times a vector, which waits for memory
_EDGE = 16  # rows and columns that OpenBLAS's kernels take at once
_LIMIT = 1 << 31  # its integers have 32 bits
_KINDS = {dtypes.float32: ("s", "float"), dtypes.float64: ("d", "double")}


@functools.cache
def _library() -> ctypes.CDLL | None:
    """OpenBLAS without threads of its own, or None where the wheel is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    folders = spec.submodule_search_locations if spec else None
    files = sorted(Path(folders[0], "lib").glob("libscipy_openblas*")) if folders else []
    if not files:
        return None
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read once, while it is loaded
    try:
        library = ctypes.CDLL(str(files[0]))
    except OSError:
        return None
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]
        if before is not None:
            os.environ["OPENBLAS_NUM_THREADS"] = before
    return library


@once
def _code(dtype: DType) -> jit.Module | None:
    library = _library()
    if library is None or dtype not in _KINDS:
        return None
    letter, number = _KINDS[dtype]
    names = {"gemm": f"scipy_cblas_{letter}gemm", "gemv": f"scipy_cblas_{letter}gemv"}
    symbols = {ours: symbol(library, theirs) for ours, theirs in names.items()}
    if not all(symbols.values()):
        return None
    return objects.compiled(blas_code.text(number, dtype.size), symbols=symbols)


def supports(dtype: Any) -> bool:
    """Whether `gemm_step` takes this dtype: float32 and float64 where OpenBLAS is installed."""
    return _code(dtypes.of(dtype)) is not None


@dataclass(frozen=True)
class _Product:
    """C (m, n) = alpha op(A) (m, k) op(B) (k, n) + beta C, `batch` times."""

    dtype: DType
    m: int
    n: int
    k: int
    ta: bool
    tb: bool
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
    def turned(self) -> bool:
        """Whether B is the matrix of a matrix-vector product, and A the vector."""
        return self.m == 1 and self.n > 1 and self.k > 0

    def operands(self) -> dict[str, int]:
        """The words of the block by name, addresses excepted."""
        alpha, beta = _bits(self.alpha, self.dtype), _bits(self.beta, self.dtype)
        both = {"k": self.k, "alpha": alpha, "beta": beta}
        both |= self._vector() if 1 in (self.m, self.n) and self.k else self._matrix()
        return both | self._cut(both.pop("axis"))

    def _matrix(self) -> dict[str, int]:
        by_rows = self.m >= self.n
        return {
            "gemv": 0, "m": self.m, "n": self.n, "ta": self.ta, "tb": self.tb, "lda": self.lda,
            "ldb": self.ldb, "ldc": self.ldc, "sa": self.sa, "sb": self.sb, "sc": self.sc,
            "by_rows": by_rows, "axis": self.m if by_rows else self.n,
        }  # fmt: skip

    def _vector(self) -> dict[str, int]:
        if self.turned:
            return {
                "gemv": 1, "m": self.n, "ta": not self.tb, "lda": self.ldb, "sa": self.sb,
                "incx": self.lda if self.ta else 1, "sb": self.sa, "incy": 1, "sc": self.sc,
                "axis": self.n,
            }  # fmt: skip
        return {
            "gemv": 1, "m": self.m, "ta": self.ta, "lda": self.lda, "sa": self.sa,
            "incx": 1 if self.tb else self.ldb, "sb": self.sb, "incy": self.ldc, "sc": self.sc,
            "axis": self.m,
        }  # fmt: skip

    def _cut(self, axis: int) -> dict[str, int]:
        """Pieces of the axis for each matrix; matrices of a batch for each task."""
        one = self.m * self.n * self.k
        grain = _GRAIN_VECTOR if 1 in (self.m, self.n) else _GRAIN
        pays = max(1, self.batch * one // grain)
        wanted = min(threads.num_threads(), pays, -(-max(1, one) // grain))
        piece = -(-axis // wanted)
        piece = max(1, -(-piece // _EDGE) * _EDGE if wanted > 1 else piece)
        parts = max(1, -(-axis // piece))
        units = parts * self.batch if self.m and self.n else 0
        each = max(1, -(-units // min(4 * threads.num_threads(), pays))) if parts == 1 else 1
        return {"parts": parts, "piece": piece, "units": units, "each": each}


def _bits(value: float, dtype: DType) -> int:
    """A number as the low bytes of a word."""
    raw = struct.pack("<f" if dtype is dtypes.float32 else "<d", value)
    return int.from_bytes(raw, "little", signed=True)


class GemmStep(Step):
    """A matrix product, or a batch of them, whose three addresses can change."""

    __slots__ = ("_turned", "_words")

    def __init__(self, code: jit.Module, product: _Product, name: str, keep: Any) -> None:
        operands = product.operands()
        names = blas_code.GEMV if operands["gemv"] else blas_code.GEMM
        tasks = -(-operands["units"] // operands["each"])
        values = [int(operands.get(name, 0)) for name in names]
        self._words = Block([code.address("many"), 0, tasks, *values])
        self._words.words[1] = self._words.address + 24
        self._turned = product.turned
        m, n, k = product.m, product.n, product.k
        moved = product.dtype.size * (m * k + k * n + m * n) * product.batch
        flops = 2 * m * n * k * product.batch
        super().__init__(
            threads.spread_address(),
            self._words.address,
            keep=(code, self._words, keep),
            name=name,
            bytes=moved,
            flops=flops,
            work=estimated(moved, flops),
        )

    def bind(self, a: int, b: int, c: int) -> None:
        """From now on the product reads at `a` and `b` and writes at `c`."""
        words = self._words.words
        words[3], words[4], words[5] = (b, a, c) if self._turned else (a, b, c)


def gemm_step(
    dtype: Any,
    m: int,
    n: int,
    k: int,
    a: int,
    b: int,
    c: int,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 0.0,
    lda: int | None = None,
    ldb: int | None = None,
    ldc: int | None = None,
    batch: int = 1,
    strides: tuple[int, int, int] | None = None,
    keep: Any = None,
    name: str = "dot",
) -> GemmStep:
    """A step that computes C = alpha op(A) op(B) + beta C, where op may transpose.

    op(A) is (m, k), op(B) (k, n), C (m, n), all with rows one after the other in memory at `a`,
    `b`, `c`; `lda`, `ldb`, `ldc` are elements from row to row as stored (default: no gap),
    `strides` elements from matrix to matrix of a batch (default: no gap; 0: one serves all). C must
    not overlap A or B; with `beta` 0 it is only written. `keep` is held by the step.

    >>> import numpy as np
    >>> a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.empty((2, 4))
    >>> gemm_step("float64", 2, 4, 3, a.ctypes.data, b.ctypes.data, c.ctypes.data).run()
    >>> float(c.min()), float(c.max())
    (3.0, 3.0)

    Raises:
        DTypeError: `supports(dtype)` is false.
        ParamError: a negative or too large size, or a distance of rows shorter than a row.
    """
    of = dtypes.of(dtype)
    code = _code(of)
    if code is None:
        raise DTypeError(
            complaint("gemm_step", "dtype", "float32 or float64 with OpenBLAS", of.name)
        )
    rows, (lda, ldb, ldc) = check_sizes(m, n, k, batch, transpose_a, transpose_b, (lda, ldb, ldc))
    sa, sb, sc = strides or (rows[0][0] * lda, rows[1][0] * ldb, rows[2][0] * ldc)
    product = _Product(
        of, m, n, k, transpose_a, transpose_b, alpha, beta, lda, ldb, ldc, batch, sa, sb, sc
    )
    step = GemmStep(code, product, name, keep)
    step.bind(a, b, c)
    return step


def check_sizes(
    m: int,
    n: int,
    k: int,
    batch: int,
    transpose_a: bool,
    transpose_b: bool,
    distances: tuple[int | None, int | None, int | None],
) -> tuple[tuple[tuple[int, int], ...], tuple[int, int, int]]:
    """A, B and C as stored, (rows, columns) of each, and the elements from row to row of each.

    Raises:
        ParamError: as `gemm_step` says.
    """
    for argument, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        if not 0 <= size < _LIMIT:
            raise ParamError(complaint("gemm_step", argument, "a size from 0 to 2**31 - 1", size))
    stored = ((k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n), (m, n))
    a, b, c = (
        _distance(f"ld{letter}", given, *shape)
        for letter, given, shape in zip("abc", distances, stored, strict=True)
    )
    return stored, (a, b, c)


def _distance(argument: str, given: int | None, rows: int, columns: int) -> int:
    """Elements from row to row; where there is one row, or nothing in it, anything may come."""
    least = max(1, columns)
    if given is None:
        return least
    if least <= given < _LIMIT:
        return given
    if rows <= 1 or not columns:
        return least
    raise ParamError(complaint("gemm_step", argument, f"at least {least} elements", given))
