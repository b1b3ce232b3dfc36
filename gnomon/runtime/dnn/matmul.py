"""Matrix products by oneDNN: float32, and the 16-bit floating types where the processor has them."""

from __future__ import annotations

import functools
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, ParamError, complaint
from gnomon.dtype import DType
from gnomon.runtime import threads
from gnomon.runtime.dnn.geometry import pieces
from gnomon.runtime.dnn.library import Description, Primitive, attributes, one_thread, primitive
from gnomon.runtime.dnn.stage import Arena, DnnStep, Phase, Place, Task

_GRAIN = 1_000_000  # multiply-adds below which another thread does not pay
_TYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


@functools.lru_cache(maxsize=512)
def _primitive(a: Description, b: Description, c: Description, accumulate: bool) -> Primitive:
    with one_thread() as found:
        create = "dnnl_matmul_primitive_desc_create"
        return primitive(create, found.engine, a, b, None, c, attributes(add=accumulate))


def matmul(
    m: int,
    n: int,
    k: int,
    *,
    dtype: Any = "float32",
    batch: int = 1,
    transpose_a: bool = False,
    transpose_b: bool = False,
    accumulate: bool = False,
    name: str = "matmul",
) -> DnnStep:
    """out (m, n) = op(a) (m, k) op(b) (k, n), where op may transpose, `batch` times.

    Operands to bind: `a`, `b`, `out`, all plain and of `dtype`; with `accumulate` the product is
    added to `out`.

    Raises:
        DTypeError: not float32, bfloat16 or float16.
        ParamError: a size below 1.
        DeviceError: oneDNN is not available.
        Refused: this processor does not have the type.
    """
    of = dtypes.of(dtype)
    if of not in _TYPES:
        raise DTypeError(complaint("matmul", "dtype", f"one of {_TYPES}", of.name))
    for argument, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        if size < 1:
            raise ParamError(complaint("matmul", argument, "at least 1", size))
    a = _Matrix(1, of, m, k, transpose_a)
    b = _Matrix(2, of, k, n, transpose_b)
    c = _Matrix(3, of, m, n, False)
    arena = Arena()
    tasks = []
    for matrix, (row, rows), (column, columns) in _cut(m, n, k, batch):
        operands = {
            "src": a.part(matrix, row, rows, 0, k),
            "weights": b.part(matrix, 0, k, column, columns),
            "dst": c.part(matrix, row, rows, column, columns),
        }
        what = _primitive(*(place.description for place in operands.values()), accumulate)
        task = Task(arena)
        task.run(what, operands)
        tasks.append(task)
    moved = of.size * batch * (m * k + k * n + m * n)
    phase = Phase(name, tasks, moved, 2 * m * n * k * batch)
    return DnnStep(name, ("a", "b", "out"), [phase], arena, what.name)


def _cut(m: int, n: int, k: int, batch: int) -> list[tuple[int, tuple[int, int], tuple[int, int]]]:
    """For each task: which matrix, which rows and which columns of the result."""
    parts = max(1, min(threads.num_threads(), m * n * k // _GRAIN)) if batch == 1 else 1
    if m >= n:
        cuts = [(rows, (0, n)) for rows in pieces(m, min(m, parts))]
    else:
        cuts = [((0, m), columns) for columns in pieces(n, min(n, parts))]
    return [(matrix, *cut) for matrix in range(batch) for cut in cuts]


class _Matrix:
    """An operand: (rows, columns) as the product sees it, the other way round in memory or not."""

    def __init__(self, number: int, dtype: DType, rows: int, columns: int, turned: bool) -> None:
        self.number, self.dtype, self.size = number, dtype, rows * columns
        self.steps = (1, rows) if turned else (columns, 1)

    def part(self, matrix: int, row: int, rows: int, column: int, columns: int) -> Place:
        """These rows and columns of one matrix of the batch."""
        description = Description.plain((rows, columns), self.steps, self.dtype)
        start = matrix * self.size + row * self.steps[0] + column * self.steps[1]
        return Place(description, self.number, start * self.dtype.size)
