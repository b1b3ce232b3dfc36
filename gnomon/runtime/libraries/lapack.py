"""LAPACK of the OpenBLAS wheel on one thread, where many cost more than they bring."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gnomon.runtime.ffi import symbol
from gnomon.runtime.libraries.blas import library
from gnomon.runtime.once import once

Array = np.ndarray[Any, Any]


@once
def _potrf(letter: str) -> Any:
    """LAPACK's factorisation, or None where there is none."""
    found = library()
    address = 0 if found is None else symbol(found, f"scipy_{letter}potrf_")
    number = ctypes.POINTER(ctypes.c_int32)
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_char_p, number, ctypes.c_void_p, number, number, ctypes.c_size_t
    )
    return kind(address) if address else None


def cholesky(a: Array) -> Array:
    """The lower triangular L with L L^T = a, of matrices (..., n, n) given by their lower triangle.

    >>> cholesky(np.array([[4.0, 9.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    factor = _potrf({"f": "s", "d": "d"}.get(a.dtype.char, ""))
    if factor is None:
        low = np.tril(a, -1)
        return np.linalg.cholesky(np.tril(a) + np.swapaxes(low, -1, -2))
    found = np.tril(a)
    size, status = ctypes.c_int32(a.shape[-1]), ctypes.c_int32()
    for matrix in found.reshape(-1, *a.shape[-2:]) if found.size else ():
        # the lower triangle by rows is the upper one by columns
        factor(b"U", size, matrix.ctypes.data, size, status, 1)
        if status.value:
            raise np.linalg.LinAlgError("Matrix is not positive definite")
    return found
