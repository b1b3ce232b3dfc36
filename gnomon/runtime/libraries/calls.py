"""Calls: which library carries out which `Call` node, and the steps that do.

A table from node types to a pair (does the library do this case, the steps); where it does not, or
is missing, the planner takes the node's fallback expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from gnomon import dtype as dtypes
from gnomon.dtype import DType
from gnomon.expr.call import BatchDot, Dot, Recurrence, RecurrenceGradient
from gnomon.expr.call.pool import Winner
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.plan.cut import Invoke
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.scratch import copied
from gnomon.runtime.libraries import dnn, gemm, neural, recurrent
from gnomon.runtime.libraries.product import Product, product

FACTORS = {"saveto": (1.0, 0.0), "plusto": (1.0, 1.0), "minusto": (-1.0, 1.0)}


#: gives a dense buffer with the elements of another, and the steps that copy them there
Copied: TypeAlias = Callable[[Buffer], tuple[Buffer, list[Any]]]


class Maker(NamedTuple):
    """How a kind of call is carried out."""

    supported: Callable[[Any], bool]
    fits: Callable[[Buffer], bool]
    steps: Callable[[Invoke], list[Step]]


def supported(call: Call) -> bool:
    """Whether a library on this machine carries out `call`."""
    maker = MAKERS.get(type(call))
    return maker is not None and maker.supported(call)


def fits(call: Call, dest: Buffer) -> bool:
    """Whether the library stores straight into memory of the layout of `dest`."""
    return MAKERS[type(call)].fits(dest)


def steps(invoke: Invoke) -> list[Step]:
    """The steps of a supported call on buffers with memory."""
    return MAKERS[type(invoke.call)].steps(invoke)


def prefers_last(dtype: DType) -> bool:
    """Whether convolutions of pictures are faster with their channels last."""
    return dtype is dtypes.float32 and dnn.available()


class Matrix(NamedTuple):
    """How BLAS reads the last two axes of a buffer: row distance, and whether stored transposed."""

    distance: int
    turned: bool


def matrix(buffer: Buffer) -> Matrix | None:
    """`buffer` as BLAS takes it; None where neither of its last two axes is dense."""
    (rows, columns), (row, column) = buffer.shape[-2:], buffer.strides[-2:]
    if (column == 1 or columns == 1) and (rows == 1 or row >= columns):
        return Matrix(max(row if rows > 1 else columns, columns, 1), False)
    if (row == 1 or rows == 1) and (columns == 1 or column >= rows):
        return Matrix(max(column if columns > 1 else rows, rows, 1), True)
    return None


def dot_supported(call: Dot) -> bool:
    """Products of floats that are not empty."""
    return gemm.supports(call.dtype) and 0 not in (*call.a.shape, *call.b.shape)


def rows_dense(dest: Buffer) -> bool:
    """Whether BLAS may write here: rows without gaps, at any distance."""
    layout = matrix(dest)
    return layout is not None and not layout.turned


def dot_steps(invoke: Invoke) -> list[Step]:
    """A product by BLAS."""
    what, a, b, before = multiplied(invoke, copied)
    step = gemm.step(what, keep=(what, a, b, invoke.dest))
    step.bind(a.address, b.address, invoke.dest.address)
    return [*before, step]


def product_of(invoke: Invoke) -> Product | None:
    """What a call multiplies; None where it is no product of operands as they lie."""
    call = invoke.call
    operands: Any = call.children
    if not isinstance(call, Dot) or None in map(matrix, operands):
        return None
    return multiplied(invoke, copied)[0]


def multiplied(invoke: Invoke, copied: Copied) -> tuple[Product, Buffer, Buffer, list[Any]]:
    """What a call multiplies: its operands' strides become transposition flags.

    Operands that BLAS cannot read are copied by steps before.
    """
    call, dest = invoke.call, invoke.dest
    assert isinstance(call, Dot)
    pairs = [dense(e, copied) for e in (call.a, call.b)]
    (a, left), (b, right) = [p[:2] for p in pairs]
    before = [step for p in pairs for step in p[2]]
    m, n = dest.shape[-2:]
    inner = call.a.shape[-2 if call.transpose_a else -1]
    factor, beta = FACTORS[invoke.saver]
    batch = call.shape[0] if isinstance(call, BatchDot) else 1
    strides = (a.strides[0], b.strides[0], dest.strides[0]) if batch > 1 else None
    what = product(
        call.dtype,
        m,
        n,
        inner,
        transpose_a=call.transpose_a != left.turned,
        transpose_b=call.transpose_b != right.turned,
        alpha=factor * invoke.scale,
        beta=beta,
        lda=left.distance,
        ldb=right.distance,
        ldc=max(dest.strides[-2] if m > 1 else n, n),
        batch=batch,
        strides=strides,
    )
    return what, a, b, before


def dense(operand: Any, copied: Copied) -> tuple[Buffer, Matrix, list[Any]]:
    """An operand that BLAS can read: itself, or a copy that a step before makes."""
    assert isinstance(operand, Buffer)
    found = matrix(operand)
    if found is not None:
        return operand, found, []
    copy, making = copied(operand)
    made = matrix(copy)
    assert made is not None
    return copy, made, making


def is_dense(dest: Buffer) -> bool:
    """Whether a buffer has no gaps."""
    return dest.contiguous


def kernel_steps(invoke: Invoke) -> list[Step]:
    """What a kernel of our own computes, in a place of its own for others to read."""
    value = invoke.call.fallback()  # type: ignore[attr-defined]
    return [neural.saved(invoke, value)]


MAKERS: dict[type[Call], Maker] = {
    Dot: Maker(dot_supported, rows_dense, dot_steps),
    BatchDot: Maker(dot_supported, rows_dense, dot_steps),
    **dict.fromkeys(
        (Recurrence, RecurrenceGradient), Maker(recurrent.supported, is_dense, recurrent.steps)
    ),
    Winner: Maker(lambda call: True, is_dense, kernel_steps),
    **dict.fromkeys(neural.OPERANDS, Maker(neural.supported, neural.fits, neural.steps)),
}
