"""Matrix products by oneDNN: float32, and 16-bit floating types where the processor has them."""

from __future__ import annotations

import functools
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, ParamError, complaint
from gnomon.dtype import DType
from gnomon.runtime import threads
from gnomon.runtime.dnn.geometry import pieces
from gnomon.runtime.dnn.library import (
    Description,
    Primitive,
    Refused,
    attributes,
    available,
    one_thread,
    primitive,
)
from gnomon.runtime.dnn.stage import Arena, DnnStep, Phase, Place, Task

Run = tuple[int, int]  # the first of some, and how many

_GRAIN = 400_000  # multiply-adds below which another thread does not pay
_MANY = 64  # rows or columns: a piece of so many is a good one
_TYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


@functools.lru_cache(maxsize=512)
def _primitive(
    a: Description, b: Description, c: Description, alpha: float, beta: float
) -> Primitive:
    with one_thread() as found:
        create = "dnnl_matmul_primitive_desc_create"
        after = attributes(alpha=alpha, beta=beta)
        return primitive(create, found.engine, a, b, None, c, after)


def supports_matmul(dtype: DType) -> bool:
    """Whether `matmul` takes this dtype here."""
    return dtype in _TYPES and available() and _supported(dtype)


@functools.cache
def _supported(dtype: DType) -> bool:
    one = Description.plain((1, 1), (1, 1), dtype)
    try:
        return bool(_primitive(one, one, one, 1.0, 0.0))
    except Refused:
        return False


def matmul(
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
) -> DnnStep:
    """C = alpha op(A) op(B) + beta C, as `blas.gemm_step` says, without degenerate sizes.

    Operands to bind: `a`, `b`, `c`.

    Raises:
        DTypeError: `supports_matmul(dtype)` is false.
        ParamError: a size below 1.
    """
    of = dtypes.of(dtype)
    if not supports_matmul(of):
        raise DTypeError(complaint("matmul", "dtype", "a type oneDNN has here", of.name))
    for argument, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        if size < 1:
            raise ParamError(complaint("matmul", argument, "at least 1", size))
    sa, sb, sc = strides or (None, None, None)
    a = _Matrix(1, of, (m, k), transpose_a, lda, sa)
    b = _Matrix(2, of, (k, n), transpose_b, ldb, sb)
    c = _Matrix(3, of, (m, n), False, ldc, sc)
    arena, tasks = Arena(), []
    for matrices, rows, columns in _cut(m, n, k, batch, transpose_b):
        operands = {
            "src": a.part(matrices, rows, (0, k)),
            "weights": b.part(matrices, (0, k), columns),
            "dst": c.part(matrices, rows, columns),
        }
        what = _primitive(*(place.description for place in operands.values()), alpha, beta)
        tasks.append(Task(arena))
        tasks[-1].run(what, operands)
    moved = of.size * batch * (m * k + k * n + m * n)
    phase = Phase(name, tasks, moved, 2 * m * n * k * batch)
    return DnnStep(name, ("a", "b", "c"), [phase], arena, what.name)


def _cut(m: int, n: int, k: int, batch: int, turned: bool) -> list[tuple[Run, Run, Run]]:
    """For each task: which matrices, which rows and which columns of the result.

    Where B is turned it is packed, and a task that has some columns only packs little of it.
    """
    parts = max(1, min(threads.num_threads(), batch * m * n * k // _GRAIN))
    if batch > 1:
        return [(matrices, (0, m), (0, n)) for matrices in pieces(batch, min(batch, parts))]
    packs = turned and n >= _MANY * parts
    if not packs and (m >= n or m >= _MANY * parts):
        return [((0, 1), rows, (0, n)) for rows in pieces(m, min(m, parts))]
    return [((0, 1), (0, m), columns) for columns in pieces(n, min(n, parts))]


class _Matrix:
    """An operand: (rows, columns) as the product sees it, the other way round in memory or not."""

    def __init__(
        self,
        number: int,
        dtype: DType,
        shape: tuple[int, int],
        turned: bool,
        distance: int | None,
        stride: int | None,
    ) -> None:
        rows, columns = shape[::-1] if turned else shape
        distance = columns if distance is None else max(columns, distance)
        self.number, self.dtype = number, dtype
        self.stride = rows * distance if stride is None else stride
        self.steps = (1, distance) if turned else (distance, 1)

    def part(self, matrices: Run, rows: Run, columns: Run) -> Place:
        """These rows and columns of these matrices of a batch; one matrix has two axes only."""
        first, count = matrices
        shape: tuple[int, ...] = (rows[1], columns[1])
        steps: tuple[int, ...] = self.steps
        if count > 1:
            shape = (count if self.stride else 1, *shape)
            steps = (self.stride or shape[1] * shape[2], *steps)
        start = first * self.stride + rows[0] * self.steps[0] + columns[0] * self.steps[1]
        description = Description.plain(shape, steps, self.dtype)
        return Place(description, self.number, start * self.dtype.size)
