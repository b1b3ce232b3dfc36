"""The tasks of matrix products cut for the pool, in native code that calls BLAS."""

from __future__ import annotations

from gnomon.native.memory import CFunction, Struct, divided
from gnomon.native.words import Reals, native, scratch

_ROWS, _PLAIN, _TURNED = 101, 111, 112  # what BLAS calls the order of elements, and transposition
_SIDE = 64  # rows and columns of a block of C that is computed aside
_BLOCK = _SIDE * _SIDE

sgemm = CFunction(
    "void sgemm(int, int, int, int, int, int, float, void *, int, void *, int, float, void *, int)"
)
dgemm = CFunction(sgemm.declared.replace("float", "double").replace("sgemm", "dgemm"))
sgemv = CFunction(
    "void sgemv(int, int, int, int, float, void *, int, void *, int, float, void *, int)"
)
dgemv = CFunction(sgemv.declared.replace("float", "double").replace("sgemv", "dgemv"))


class Shared(Struct):
    """A product's operands: what matrices and vectors have.

    `parts` pieces of an axis of C, of `piece` elements each but the last, are a unit each; a task
    does `each` of the `units` of all products of the batch, from one to the next of which are `sa`,
    `sb` and `sc` elements.
    """

    a: int
    b: int
    c: int
    m: int
    k: int
    lda: int
    ta: int
    alpha: float
    beta: float
    size: int  # bytes of an element: 4 or 8
    parts: int
    piece: int
    sa: int
    sb: int
    sc: int
    gemv: int
    each: int
    units: int


class Gemm(Shared):
    """A matrix times a matrix."""

    n: int
    ldb: int
    ldc: int
    tb: int
    by_rows: int


class Gemv(Shared):
    """A matrix times a vector."""

    incx: int
    incy: int


@native
def many(shared: Shared, task: int, tasks: int) -> None:
    first = task * shared.each
    for unit in range(first, min(first + shared.each, shared.units)):
        if shared.gemv != 0:
            gemv_unit(Gemv(shared.address), unit)
        else:
            gemm_unit(Gemm(shared.address), unit)


@native
def times_nothing(
    p: Shared, ta: int, tb: int, m: int, n: int, a: int, b: int, ldb: int, c: int, ldc: int
) -> None:
    """A float64 product times 0, by blocks of C: BLAS would not read what may be NaN."""
    found = Reals(scratch(_BLOCK).address)
    i = 0
    while i < m:
        rows = min(m - i, _SIDE)
        left = a + i * (8 if ta == _TURNED else p.lda * 8)
        j = 0
        while j < n:
            columns = min(n - j, _SIDE)
            right = b + j * (ldb * 8 if tb == _TURNED else 8)
            block(p, ta, tb, rows, columns, left, right, ldb, found.address)
            nothing_of(p, found, rows, columns, c + (i * ldc + j) * 8, ldc)
            j += columns
        i += rows


@native
def block(
    p: Shared, ta: int, tb: int, m: int, n: int, a: int, b: int, ldb: int, found: int
) -> None:
    """A block of a product of matrices, or of a matrix and a vector, by rows without gaps."""
    if p.gemv != 0:
        rows = p.k if ta == _TURNED else m
        columns = m if ta == _TURNED else p.k
        dgemv(_ROWS, ta, rows, columns, 1.0, a, p.lda, b, ldb, 0.0, found, 1)
    else:
        dgemm(_ROWS, ta, tb, m, n, p.k, 1.0, a, p.lda, b, ldb, 0.0, found, n)


@native
def nothing_of(p: Shared, found: Reals, rows: int, columns: int, c: int, ldc: int) -> None:
    """A block of C, where `found` lies that is to be multiplied by 0."""
    for i in range(rows):
        row = Reals(c + i * ldc * 8)
        for j in range(columns):
            product = p.alpha * found[i * columns + j]
            row[j] = product if p.beta == 0 else product + p.beta * row[j]


@native
def gemm_unit(p: Gemm, unit: int) -> None:
    which = divided(unit, p.parts)
    start = (unit - which * p.parts) * p.piece
    size = min((p.m if p.by_rows != 0 else p.n) - start, p.piece)
    if size <= 0:
        return
    row = start if p.by_rows != 0 else 0
    column = 0 if p.by_rows != 0 else start
    m = size if p.by_rows != 0 else p.m
    n = p.n if p.by_rows != 0 else size
    a = p.a + (which * p.sa + row * (1 if p.ta != 0 else p.lda)) * p.size
    b = p.b + (which * p.sb + column * (p.ldb if p.tb != 0 else 1)) * p.size
    c = p.c + (which * p.sc + row * p.ldc + column) * p.size
    ta = _TURNED if p.ta != 0 else _PLAIN
    tb = _TURNED if p.tb != 0 else _PLAIN
    if p.size == 8 and p.alpha == 0:
        times_nothing(p, ta, tb, m, n, a, b, p.ldb, c, p.ldc)
    elif p.size == 8:
        dgemm(_ROWS, ta, tb, m, n, p.k, p.alpha, a, p.lda, b, p.ldb, p.beta, c, p.ldc)
    else:
        sgemm(_ROWS, ta, tb, m, n, p.k, p.alpha, a, p.lda, b, p.ldb, p.beta, c, p.ldc)


@native
def gemv_unit(p: Gemv, unit: int) -> None:
    which = divided(unit, p.parts)
    start = (unit - which * p.parts) * p.piece
    size = min(p.m - start, p.piece)
    if size <= 0:
        return
    a = p.a + (which * p.sa + start * (1 if p.ta != 0 else p.lda)) * p.size
    x = p.b + which * p.sb * p.size
    y = p.c + (which * p.sc + start * p.incy) * p.size
    ta = _TURNED if p.ta != 0 else _PLAIN
    rows = p.k if p.ta != 0 else size
    columns = size if p.ta != 0 else p.k
    if p.size == 8 and p.alpha == 0:
        times_nothing(p, ta, _PLAIN, size, 1, a, x, p.incx, y, p.incy)
    elif p.size == 8:
        dgemv(_ROWS, ta, rows, columns, p.alpha, a, p.lda, x, p.incx, p.beta, y, p.incy)
    else:
        sgemv(_ROWS, ta, rows, columns, p.alpha, a, p.lda, x, p.incx, p.beta, y, p.incy)
