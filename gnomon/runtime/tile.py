"""Small matrix products by code of our own, which packs nothing: see `tile_code.py`.

A library brings parts of both operands into an order of its own before it multiplies. Where C has
few rows or the inner axis is short, that takes as long as the product.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

from gnomon import dtype as dtypes
from gnomon.dtype import DType
from gnomon.runtime import jit, objects, threads, tile_code
from gnomon.runtime.native import Block
from gnomon.runtime.program import Step, estimated

_GRAIN = 400_000  # multiply-adds below which another thread does not pay
_EDGE = 16  # rows or columns that a piece is a multiple of
_SMALL = 300_000  # multiply-adds up to which packing takes longer than it saves
_MIDDLE = 4_000_000
_WIDE = 64  # bytes of a register where there are 32 of them


def fits(dtype: DType, m: int, n: int, k: int, batch: int, ta: bool, tb: bool) -> bool:
    """Whether a product is one that this does faster than a library.

    Measured on one core, float32, in microseconds, this before oneDNN: (32 128 784) with B turned
    45, 65; (32 500 800) so 172, 223; (10 64 32) with A turned 0.4, 1.4; (1 128 784) 2.6, 14; but
    (128 500 800) with B turned 640, 610, and (20 200 800) with nothing turned 37, 33.
    """
    if dtype is not dtypes.float32 or batch != 1 or (ta and tb) or min(m, n, k) < 1:
        return False
    if not _has_fma():
        return False
    work = m * n * k
    if work <= _SMALL:
        return True
    return work <= 4 * _MIDDLE and m <= 64 and k >= 512 if tb else work <= _MIDDLE and k <= 64


@functools.cache
def _has_fma() -> bool:
    """Whether a product and a sum are one instruction here; else they would be a function."""
    host = jit.host()
    return "fma" in host.features or not host.triple.startswith(("x86", "i686", "amd64"))


@functools.cache
def _code() -> jit.Module:
    wide = jit.host().vector_bytes
    machine = tile_code.Machine("float", 4, wide // 4, 32 if wide >= _WIDE else 16)
    return objects.compiled(tile_code.text(machine))


class TileStep(Step):
    """A small product whose three addresses can change."""

    __slots__ = ("_words",)

    def __init__(self, values: dict[str, int], tasks: int, name: str, keep: Any) -> None:
        code = _code()
        numbers = [int(values.get(word, 0)) for word in tile_code.WORDS]
        self._words = Block([code.address("tiles"), 0, tasks, *numbers])
        self._words.words[1] = self._words.address + 24
        m, n, k = values["m"], values["n"], values["k"]
        moved, flops = 4 * (m * k + k * n + m * n), 2 * m * n * k
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
        words[3], words[4], words[5] = a, b, c


def step(
    m: int,
    n: int,
    k: int,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 0.0,
    lda: int | None = None,
    ldb: int | None = None,
    ldc: int | None = None,
    name: str = "dot",
    keep: Any = None,
    **_: Any,
) -> TileStep:
    """C = alpha op(A) op(B) + beta C in float32, as `blas.gemm_step` says, of what `fits`."""
    lda, ldb = lda or (m if transpose_a else k), ldb or (k if transpose_b else n)
    row, along = (1, lda) if transpose_a else (lda, 1)
    wanted = min(threads.num_threads(), max(1, m * n * k // _GRAIN))
    by_rows = m >= _EDGE * wanted and not (transpose_b and n >= m)
    axis = m if by_rows else n
    piece = axis if wanted == 1 else -(-axis // (wanted * _EDGE)) * _EDGE
    values = {
        "m": m, "n": n, "k": k, "row": row, "along": along, "ldb": ldb, "ldc": ldc or n,
        "alpha": _bits(alpha), "beta": _bits(beta), "inner": transpose_b, "by_rows": by_rows,
        "piece": piece,
    }  # fmt: skip
    return TileStep(values, -(-axis // piece), name, keep)


def _bits(value: float) -> int:
    """A float32 as the low bytes of a word."""
    return int.from_bytes(struct.pack("<f", value), "little")
