"""Matrix products in words: what is multiplied, and how it lies in memory.

`gemm.py` says which library computes one; each of them takes a `Product`, and gives a step whose
three addresses can change.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import ParamError, complaint
from gnomon.dtype import DType
from gnomon.ground.record import fields_of, record
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Step, estimated
from gnomon.runtime.ffi import Block

_LIMIT = 1 << 31  # libraries' integers have 32 bits


@record()
class Product:
    """C (m, n) = alpha op(A) (m, k) op(B) (k, n) + beta C, `batch` times; op may transpose.

    `lda`, `ldb`, `ldc` are elements from row to row as stored, `sa`, `sb`, `sc` from matrix to
    matrix of a batch (0: one serves all). C must not overlap A or B; with `beta` 0 it is only
    written. Where B is `packed` it lies in panels, as `tile.panels` makes them.
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
    name: str
    packed: bool

    @property
    def is_possible(self) -> bool:
        """Whether its sizes are none too large, and rows do not overlap."""
        rows, inner = (self.k, self.m) if self.transpose_a else (self.m, self.k)
        down, across = (self.n, self.k) if self.transpose_b else (self.k, self.n)
        return (
            (self.lda >= inner or rows == 1)
            and (self.ldb >= across or down == 1)
            and (self.ldc >= self.n or self.m == 1)
            and max(self.m, self.n, self.k, self.batch) < _LIMIT
        )

    @property
    def is_vector(self) -> bool:
        """Whether one of the matrices is a vector."""
        return 1 in (self.m, self.n)

    @property
    def work(self) -> int:
        """Multiply-adds of one matrix of the batch."""
        return self.m * self.n * self.k

    @property
    def flops(self) -> int:
        """Operations of the whole batch."""
        return 2 * self.work * self.batch

    @property
    def bytes(self) -> int:
        """What is moved where each operand is moved once."""
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return self.dtype.size * elements * self.batch


FIELDS = tuple([field.name for field in fields_of(Product)])
NUMBERS = "m n k lda ldb ldc batch sa sb sc".split()  # the fields that sizes decide


def product(
    dtype: Any,
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
    batch: int = 1,
    strides: tuple[int, int, int] | None = None,
    name: str = "dot",
    packed: bool = False,
) -> Product:
    """The product of operands without gaps, where no other distances or `strides` are given.

    >>> made = product("float32", 2, 4, 3, transpose_a=True, batch=5)
    >>> made.lda, made.ldb, (made.sa, made.sb, made.sc)
    (2, 4, (6, 12, 8))

    Raises:
        ParamError: a negative or too large size, or a distance of rows shorter than a row.
    """
    for argument, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        if not 0 <= size < _LIMIT:
            raise ParamError(complaint("gemm_step", argument, "a size from 0 to 2**31 - 1", size))
    a, b, c = ((k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n), (m, n))
    lda, ldb, ldc = _distance("lda", lda, *a), _distance("ldb", ldb, *b), _distance("ldc", ldc, *c)
    sa, sb, sc = strides or (a[0] * lda, b[0] * ldb, c[0] * ldc)
    return Product(
        dtypes.of(dtype), m, n, k, transpose_a, transpose_b, alpha, beta, lda, ldb, ldc,
        batch, sa, sb, sc, name, packed,
    )  # fmt: skip


class ProductStep(Step):
    """A product by the pool's threads, whose three addresses can change.

    Its block, all words int64: `[function, operands, tasks]` for the pool, then the operands, of
    which the first three are the addresses.
    """

    __slots__ = ("_words",)

    def __init__(
        self, product: Product, function: int, tasks: int, operands: Sequence[int], keep: Any
    ) -> None:
        self._words = Block([function, 0, tasks, *operands])
        self._words.words[1] = self._words.address + 24
        super().__init__(
            threads.spread_address(),
            self._words.address,
            keep=(self._words, keep),
            name=product.name,
            bytes=product.bytes,
            flops=product.flops,
            work=estimated(product.bytes, product.flops),
        )

    def bind(self, a: int, b: int, c: int) -> None:
        """From now on the product reads at `a` and `b` and writes at `c`."""
        words = self._words.words
        words[3], words[4], words[5] = a, b, c

    def address_words(self) -> tuple[Block, list[int]]:
        """The block, and which of its words `bind` writes."""
        return self._words, [3, 4, 5]


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


@functools.lru_cache(maxsize=64)
def bits(value: float, dtype: DType) -> int:
    """A number of float32 or float64 as the low bytes of a word.

    >>> hex(bits(1.0, dtypes.float32))
    '0x3f800000'
    """
    raw = struct.pack("<f" if dtype is dtypes.float32 else "<d", value)
    return int.from_bytes(raw, "little", signed=True)
