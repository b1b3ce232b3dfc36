"""Matrix products by the fastest way for each: oneDNN, OpenBLAS, or code of our own.

With AVX-512 most of float32 goes to code of our own, `tile.py`. Of what is left, measured on one
core, in microseconds, oneDNN before OpenBLAS: (512 512 512) 1,590, 1,640; a matrix times a vector
(1 1024 1024) 317, 127. A step of oneDNN takes 100 to 370 us to make, for each size anew; one of
OpenBLAS or by tiles 25.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Any

from gnomon import dtype as dtypes
from gnomon.expr.node import Buffer
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.rebind import Values, Where
from gnomon.runtime.libraries import blas, dnn, tile
from gnomon.runtime.libraries.product import FIELDS, NUMBERS, Product, product


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


class OfProduct:
    """The step of a product on operands as they lie, which follows from its numbers."""

    kernel, dims = None, ()

    def __init__(self, what: Product, where: Sequence[Where]) -> None:
        self.where = where
        self._fields = {name: getattr(what, name) for name in FIELDS}

    def values(self) -> dict[Any, int]:
        """Sizes, distances, and where its operands are."""
        offsets = {("offset", k): w.offset for k, w in enumerate(self.where)}
        return offsets | {("number", name): self._fields[name] for name in NUMBERS}

    def is_like(self, other: Any) -> bool:
        """Whether both are one product but for numbers, on the same operands."""
        if not isinstance(other, OfProduct):
            return False
        numbers = {name: other._fields[name] for name in NUMBERS}
        same = self._fields | numbers == other._fields
        return same and [w.operand for w in self.where] == [w.operand for w in other.where]

    def ready(self, values: Values) -> tuple[Product, list[int]] | None:
        """The product with these values, and how many bytes behind an operand each begins."""
        numbers = {name: n for (kind, name), n in values.items() if kind == "number"}
        made = Product(**(self._fields | numbers))
        offsets = [values.get(("offset", k), w.offset) for k, w in enumerate(self.where)]
        return (made, offsets) if made.is_possible else None

    def made(
        self,
        operands: Sequence[int],
        ready: tuple[Product, list[int]],
        times: float,
        owned: Sequence[Buffer] = (),
    ) -> list[Step]:
        """As `OfKernel.made`, of what is `ready`."""
        what, offsets = ready
        made = step(what, keep=[b.owner for b in owned])
        made.bind(*map(add, operands, offsets))
        return [made]
