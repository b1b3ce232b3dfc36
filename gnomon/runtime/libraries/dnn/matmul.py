"""Matrix products by oneDNN: float32, and 16-bit floating types where the processor has them."""

from __future__ import annotations

import functools

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, ParamError, complaint
from gnomon.dtype import DType
from gnomon.runtime.execution import threads
from gnomon.runtime.libraries.dnn.geometry import pieces
from gnomon.runtime.libraries.dnn.library import (
    Description,
    Primitive,
    Unsupported,
    attributes,
    available,
    kept,
    one_thread,
    primitive,
)
from gnomon.runtime.libraries.dnn.phases import Arena, DnnStep, Phase, Place, Task
from gnomon.runtime.libraries.product import Product

Run = tuple[int, int]  # the first of some, and how many

_GRAIN = 400_000  # multiply-adds below which another thread does not pay
_MANY = 64  # rows or columns: a piece of so many is a good one
_TYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


@kept
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
    except Unsupported:
        return False


def matmul(p: Product) -> DnnStep:
    """A step that computes a product without degenerate sizes; operands to bind: `a`, `b`, `c`.

    Raises:
        DTypeError: `supports_matmul(p.dtype)` is false.
        ParamError: a size below 1.
    """
    if not supports_matmul(p.dtype):
        raise DTypeError(complaint("matmul", "dtype", "a type oneDNN has here", p.dtype.name))
    for argument, size in (("m", p.m), ("n", p.n), ("k", p.k), ("batch", p.batch)):
        if size < 1:
            raise ParamError(complaint("matmul", argument, "at least 1", size))
    a = _Matrix(1, p.dtype, p.transpose_a, p.lda, p.sa)
    b = _Matrix(2, p.dtype, p.transpose_b, p.ldb, p.sb)
    c = _Matrix(3, p.dtype, False, p.ldc, p.sc)
    arena, tasks = Arena(), []
    for matrices, rows, columns in _cut(p):
        operands = {
            "src": a.part(matrices, rows, (0, p.k)),
            "weights": b.part(matrices, (0, p.k), columns),
            "dst": c.part(matrices, rows, columns),
        }
        src, weights, dst = (place.description for place in operands.values())
        what = _primitive(src, weights, dst, p.alpha, p.beta)
        tasks.append(Task(arena))
        tasks[-1].run(what, operands)
    phase = Phase(p.name, tasks, p.bytes, p.flops)
    return DnnStep(p.name, ("a", "b", "c"), [phase], arena, what.name)


def _cut(p: Product) -> list[tuple[Run, Run, Run]]:
    """For each task: which matrices, which rows and which columns of the result.

    Where B is turned it is packed, and a task that has some columns only packs little of it.
    """
    m, n = p.m, p.n
    parts = max(1, min(threads.num_threads(), p.batch * p.work // _GRAIN))
    if p.batch > 1:
        return [(matrices, (0, m), (0, n)) for matrices in pieces(p.batch, min(p.batch, parts))]
    packs = p.transpose_b and n >= _MANY * parts
    if not packs and (m >= n or m >= _MANY * parts):
        return [((0, 1), rows, (0, n)) for rows in pieces(m, min(m, parts))]
    return [((0, 1), (0, m), columns) for columns in pieces(n, min(n, parts))]


class _Matrix:
    """An operand, which the product sees as it is in memory, or the other way round."""

    def __init__(self, number: int, dtype: DType, turned: bool, distance: int, stride: int) -> None:
        self.number, self.dtype, self.stride = number, dtype, stride
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
