"""LAPACK of the OpenBLAS wheel on one thread, where many cost more than they bring.

Matrices lie by rows, LAPACK reads them by columns: it works on their transposes. Small ones, and
all where there is no wheel, go to NumPy, which takes less time to call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from gnomon.runtime.ffi import symbol
from gnomon.runtime.libraries.blas import library
from gnomon.runtime.once import once

Array = np.ndarray[Any, Any]
SMALL = 32  # rows of a matrix below which the call takes longer than the work
BLOCK = 64  # columns that a workspace has, and that a step of a triangle takes


@once
def _routine(name: str) -> Any:
    """A routine by its name, or None where there is no library."""
    found = library()
    address = 0 if found is None else symbol(found, f"scipy_{name}_")
    return ctypes.CFUNCTYPE(None)(address) if address else None


def _known(name: str, a: Array) -> Any:
    """The routine for the dtype of matrices; None where NumPy does their work."""
    letter = {"f": "s", "d": "d"}.get(a.dtype.char)
    return None if letter is None or a.shape[-1] < SMALL else _routine(letter + name)


def _each(a: Array) -> Iterator[Any]:
    """The address of every matrix; LinAlgError where one cannot be worked with."""
    for matrix in a.reshape(-1, *a.shape[-2:]) if a.size else ():
        yield ctypes.c_void_p(matrix.ctypes.data)


def _int(n: int = 0) -> Any:
    return ctypes.c_int32(n)


def clear_above(matrices: Array) -> None:
    """Zero what lies above the diagonals, by blocks: a mask of all elements takes far longer.

    >>> a = np.ones((2, 2))
    >>> clear_above(a)
    >>> a
    array([[1., 0.],
           [1., 1.]])
    """
    order = matrices.shape[-1]
    above = np.triu(np.ones((BLOCK, BLOCK), np.bool_), 1)
    for k in range(0, order, BLOCK):
        rows = matrices[..., k : k + BLOCK, :]
        block = rows[..., k : k + BLOCK]
        size = block.shape[-1]
        np.copyto(block, 0, where=above[:size, :size])
        rows[..., k + BLOCK :] = 0


def cholesky(a: Array, room: Array | None = None) -> Array:
    """The lower triangular L with L L^T = a, of matrices (..., n, n) given by their lower triangle.

    It may lie in `room`, an array by rows of the same kind.

    >>> cholesky(np.array([[4.0, 9.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    factor = _known("potrf", a)
    if factor is None:
        low = np.tril(a, -1)
        return np.linalg.cholesky(np.tril(a) + np.swapaxes(low, -1, -2))
    found = np.empty_like(a, order="C") if room is None else room
    np.copyto(found, a)
    n, status = _int(a.shape[-1]), _int()
    for matrix in _each(found):  # the lower triangle by rows is the upper one by columns
        factor(b"U", ctypes.byref(n), matrix, ctypes.byref(n), ctypes.byref(status), _ONE)
        if status.value:
            raise np.linalg.LinAlgError("Matrix is not positive definite")
    clear_above(found)
    return found


def inverse(a: Array) -> Array:
    """The inverse of matrices (..., n, n).

    >>> inverse(np.array([[0.0, 2.0], [1.0, 0.0]]))
    array([[0. , 1. ],
           [0.5, 0. ]])

    Raises:
        LinAlgError: a matrix is singular.
    """
    factor, invert = _known("getrf", a), _known("getri", a)
    if factor is None or invert is None:
        return np.asarray(np.linalg.inv(a))
    found = np.array(a, order="C")
    order = found.shape[-1]
    pivots, work = np.empty(order, np.int32), np.empty(order * BLOCK, a.dtype)
    n, size, trouble = ctypes.byref(_int(order)), ctypes.byref(_int(work.size)), _int()
    status = ctypes.byref(trouble)
    places = ctypes.c_void_p(pivots.ctypes.data)
    for matrix in _each(found):
        factor(n, n, matrix, n, places, status)
        if not trouble.value:
            invert(n, matrix, n, places, ctypes.c_void_p(work.ctypes.data), size, status)
        if trouble.value:
            raise np.linalg.LinAlgError("Singular matrix")
    return found


def slogdet(a: Array) -> tuple[Array, Array]:
    """The sign of the determinants of matrices (..., n, n), and the logarithms of their sizes.

    >>> [float(x) for x in slogdet(np.array([[0.0, 2.0], [1.0, 0.0]]))]
    [-1.0, 0.6931471805599453]
    """
    factor = _known("getrf", a)
    if factor is None:
        found = np.linalg.slogdet(a)
        return np.asarray(found[0]), np.asarray(found[1])
    factors = np.array(a, order="C")
    order = factors.shape[-1]
    pivots = np.empty((*a.shape[:-2], order), np.int32)
    n, status = ctypes.byref(_int(order)), ctypes.byref(_int())
    for matrix, row in zip(_each(factors), pivots.reshape(-1, order), strict=False):
        factor(n, n, matrix, n, ctypes.c_void_p(row.ctypes.data), status)
    diagonal = np.diagonal(factors, 0, -2, -1)
    swaps = (pivots != np.arange(1, order + 1)).sum(-1) % 2
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.abs(diagonal.astype(np.float64))).sum(-1)
    sign = np.sign(diagonal).prod(-1) * (1 - 2 * swaps)
    return sign.astype(a.dtype), logarithm.astype(a.dtype)


def divided(low: Array, b: Array) -> Array:
    """`inverse(low.T) @ b`, of lower triangular matrices (..., n, n).

    >>> divided(np.array([[2.0, 0.0], [1.0, 4.0]]), np.eye(2))
    array([[ 0.5  , -0.125],
           [ 0.   ,  0.25 ]])

    Raises:
        LinAlgError: a matrix is singular.
    """
    solve = _known("trsm", low)
    turned = np.swapaxes(np.tril(low), -1, -2)
    if solve is None:
        return np.asarray(np.linalg.solve(turned, b))
    if not np.diagonal(low, 0, -2, -1).all():
        raise np.linalg.LinAlgError("Singular matrix")
    factors, found = np.ascontiguousarray(low), np.array(b, order="C")
    m, n = (ctypes.byref(_int(k)) for k in found.shape[-1:-3:-1])
    one = ctypes.byref((ctypes.c_float if low.dtype.char == "f" else ctypes.c_double)(1))
    for matrix, part in zip(_each(factors), _each(found), strict=True):
        # by columns: X U^T = B^T of the upper triangular U, which is `low` by rows
        solve(b"R", b"U", b"T", b"N", m, n, one, matrix, n, part, m, _ONE, _ONE, _ONE, _ONE)
    return found


def product(a: Array, b: Array) -> Array:
    """`a @ b`, of as many matrices on either side.

    NumPy's own library has threads of its own, which wait busily for each other: on a machine that
    is not idle they take fifty times as long.

    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    multiply = _known("gemm", a)
    if multiply is None or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return np.asarray(a @ b)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    found = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    m, k, n = (ctypes.byref(_int(size)) for size in (*a.shape[-2:], b.shape[-1]))
    kind = ctypes.c_float if a.dtype.char == "f" else ctypes.c_double
    one, zero = ctypes.byref(kind(1)), ctypes.byref(kind(0))
    for left, right, out in zip(_each(a), _each(b), _each(found), strict=False):
        # by columns: the transposed product of the transposes
        multiply(b"N", b"N", n, m, k, one, right, n, left, k, zero, out, n, _ONE, _ONE)
    return found


_ONE = ctypes.c_size_t(1)  # the length of a letter
