"""LAPACK of the OpenBLAS wheel on one thread, where many cost more than they bring.

Matrices lie by rows, LAPACK reads them by columns: it works on their transposes. A routine for all
matrices of a batch is one call of native code. Where there is no wheel, and where NumPy takes less
time to call for small matrices, NumPy does the work: transposed as well, and triangles as upper
ones, where rows never change places. So no size decides which are singular.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gnomon.native.serve import raw_function
from gnomon.native.words import double_bits, single_bits
from gnomon.runtime.ffi import Block, ffi, pointer, symbol
from gnomon.runtime.libraries.blas import library
from gnomon.runtime.libraries.lapack_code import MOST, each, inverted

Array = np.ndarray[Any, Any]
SMALL = 48  # columns of matrices below which NumPy is done sooner, if it has the routine
BLOCK = 64  # rows and columns of a part of a triangle
_LENGTH = 2 + 2 * MOST  # words of a `Batch` and what lies behind it
_ABOVE = np.triu(np.ones((BLOCK, BLOCK), np.bool_), 1)


@functools.cache
def _address(name: str) -> int:
    found = library()
    return 0 if found is None else symbol(found, f"scipy_{name}_")


def _knows(a: Array, small: int = 0) -> bool:
    """Whether LAPACK does the work on matrices, which are not below so many columns."""
    return a.dtype.char in "fd" and a.shape[-1] >= small and library() is not None


def _run(name: str, *arguments: Any) -> None:
    """Call a routine for every matrix of batches: arrays go along their first axis, if it is long.

    Several letters are an argument each; a float is of the kind of the first array's elements.
    """
    arrays = [x for x in arguments if type(x) is np.ndarray]
    known = [None if type(x) is np.ndarray else x for x in arguments]
    made, places, _ = _prepared(name, arrays[0].dtype.char, *known)
    block = Block(_LENGTH)
    words = block.words
    ffi.memmove(words, made.words, 8 * _LENGTH)
    words[1] = max(map(len, arrays))
    for k, x in zip(places, arrays, strict=True):
        if not x.size:
            return
        words[k], words[k + MOST] = _start(x), x.strides[0] if len(x) > 1 else 0
    raw_function(each)(pointer(block.address))


def _start(x: Array) -> int:
    """The address of an array with dense rows; NumPy takes three times as long to tell it."""
    while x.ndim > 1:
        x = x[0]
    return int(ffi.cast("intptr_t", ffi.from_buffer(x)))


@functools.lru_cache(1024)
def _prepared(name: str, kind: str, *known: Any) -> tuple[Block, list[int], Block]:
    """A `Batch` where all but arrays are known; where the words of these go; what is kept."""
    bits = single_bits if kind == "f" else double_bits
    kept, places = Block(MOST), []
    # what follows the arguments are the lengths of letters, 1
    words = [_address(("s" if kind == "f" else "d") + name), 0, *[1] * MOST, *[0] * MOST]
    k = 0
    for given in known:
        if given is None:
            places.append(k + 2)
            k += 1
            continue
        number = bits(given) if isinstance(given, float) else given
        for value in number if isinstance(number, bytes) else (number,):
            kept.words[k] = value
            words[k + 2] = kept.address + 8 * k
            k += 1
    return Block(words), places, kept


def turned(a: Array) -> Array:
    """Matrices transposed."""
    return np.swapaxes(a, -1, -2)


def flat(a: Array) -> Array:
    """All matrices in one row."""
    return a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


def _status(a: Array) -> Array:
    return np.zeros(math.prod(a.shape[:-2]), np.int32)


def clear_above(matrices: Array) -> None:
    """Zero what lies above the diagonals, by blocks: a mask of all elements takes far longer.

    >>> a = np.ones((2, 2))
    >>> clear_above(a)
    >>> a
    array([[1., 0.],
           [1., 1.]])
    """
    order = matrices.shape[-1]
    for k in range(0, order, BLOCK):
        rows = matrices[..., k : k + BLOCK, :]
        block = rows[..., k : k + BLOCK]
        size = block.shape[-1]
        np.copyto(block, 0, where=_ABOVE[:size, :size])
        rows[..., k + BLOCK :] = 0


def lower(a: Array) -> Array:
    """Copies of matrices (..., n, n), with zeros above the diagonals."""
    found = np.array(a, order="C")
    clear_above(found)
    return found


def cholesky(a: Array, room: Array | None = None) -> Array:
    """The lower triangular L with L L^T = a, of matrices (..., n, n) given by their lower triangle.

    It may lie in `room`, an array by rows of the same kind.

    >>> cholesky(np.array([[4.0, 9.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    if not _knows(a):
        low = np.tril(a, -1)
        return np.linalg.cholesky(np.tril(a) + turned(low))
    columns = np.empty_like(a, order="C")  # by columns the lower factor is found in less time
    _copy_lower(a, turned(columns))
    n, status = a.shape[-1], _status(a)
    _run("potrf", b"L", n, flat(columns), n, status)
    if status.any():
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    found = np.empty_like(a, order="C") if room is None else room
    _copy_lower(turned(columns), found)
    clear_above(found)
    return found


def _copy_lower(a: Array, found: Array) -> None:
    """Copy lower triangles, and what stands beside them in the blocks on the diagonal."""
    for k in range(0, a.shape[-1], BLOCK):
        found[..., k : k + BLOCK, : k + BLOCK] = a[..., k : k + BLOCK, : k + BLOCK]


def inverse(a: Array) -> Array:
    """The inverse of matrices (..., n, n), by those of their factors: faster than LAPACK's own.

    >>> inverse(np.array([[0.0, 2.0], [1.0, 0.0]]))
    array([[0. , 1. ],
           [0.5, 0. ]])

    Raises:
        LinAlgError: a matrix is singular.
    """
    if not _knows(a, SMALL):
        return turned(np.linalg.inv(turned(a)))
    found = np.array(a, order="C")
    pivots, status = _factored(found)
    if status.any():
        raise np.linalg.LinAlgError("Singular matrix")
    # rows that changed places, times a lower triangle, times an upper one with ones on its diagonal
    _invert(found, b"U", b"N")
    _invert(found, b"L", b"U")
    products = lower(found)
    _apply("trmm", b"LNU", found, products)
    for matrix, moved, row in zip(flat(found), flat(products), pivots, strict=True):
        matrix[_order(row)] = moved
    return found


def _factored(matrices: Array) -> tuple[Array, Array]:
    """Factor matrices in place: the rows of their pivots, and a status of each."""
    n, all_of_them = matrices.shape[-1], flat(matrices)
    pivots, status = np.empty((len(all_of_them), n), np.int32), _status(matrices)
    _run("getrf", n, n, all_of_them, n, pivots, status)
    return pivots, status


def _order(pivots: Array) -> list[int]:
    """Where each row goes when it changed places with that of its pivot, the first row last."""
    order = list(range(len(pivots)))
    for k, other in enumerate(pivots.tolist()):
        order[k], order[other - 1] = order[other - 1], order[k]
    return order


def _invert(matrices: Array, triangle: bytes, diagonal: bytes) -> None:
    """Invert triangles (by columns) in place, by parts, since products are what is fast."""
    found, kind = flat(matrices), matrices.dtype.char
    if not found.size:
        return
    bits = single_bits if kind == "f" else double_bits
    routines = [_address(("s" if kind == "f" else "d") + name) for name in ("trtri", "trmm")]
    letters = ord(triangle), ord(diagonal), *b"LRN"
    block = Block([*routines, _start(found), found.strides[0], *found.shape[:2], BLOCK,
                   found.itemsize, triangle == b"U", *letters, bits(1), bits(-1)])  # fmt: skip
    raw_function(inverted)(pointer(block.address))


def _apply(name: str, kind: bytes, triangles: Array, b: Array) -> None:
    """Multiply or divide `b` in place from the left: by triangles that are of a kind by columns."""
    m, n = b.shape[-1:-3:-1]
    _run(name, b"R" + kind, m, n, 1.0, flat(triangles), n, flat(b), m)


def slogdet(a: Array) -> tuple[Array, Array]:
    """The sign of the determinants of matrices (..., n, n), and the logarithms of their sizes.

    >>> [float(x) for x in slogdet(np.array([[0.0, 2.0], [1.0, 0.0]]))]
    [-1.0, 0.6931471805599453]
    """
    if not _knows(a, SMALL):
        found = np.linalg.slogdet(turned(a))
        return np.asarray(found[0]), np.asarray(found[1])
    factors = np.array(a, order="C")
    pivots, _ = _factored(factors)
    diagonal = np.diagonal(factors, 0, -2, -1)
    swaps = (pivots != np.arange(1, a.shape[-1] + 1)).sum(-1).reshape(a.shape[:-2]) % 2
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.abs(diagonal.astype(np.float64))).sum(-1)
    sign = np.sign(diagonal).prod(-1) * (1 - 2 * swaps)
    return sign.astype(a.dtype), logarithm.astype(a.dtype)


def lower_inverse(low: Array) -> Array:
    """The inverse of lower triangular matrices (..., n, n); what stands above them has no meaning.

    >>> lower_inverse(np.array([[2.0, 9.0], [1.0, 4.0]]))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])

    Raises:
        LinAlgError: a matrix is singular.
    """
    if not np.diagonal(low, 0, -2, -1).all():
        raise np.linalg.LinAlgError("Singular matrix")
    found = lower(low)
    if not _knows(low):
        return turned(np.linalg.inv(turned(found)))
    _invert(found, b"U", b"N")
    return found


def divided(low: Array, b: Array, transpose: bool = False) -> Array:
    """`inverse(low) @ b`, or `inverse(low.T) @ b`, of lower triangular matrices (..., n, n).

    >>> divided(np.array([[2.0, 9.0], [1.0, 4.0]]), np.eye(2), transpose=True)
    array([[ 0.5  , -0.125],
           [ 0.   ,  0.25 ]])

    Raises:
        LinAlgError: a matrix is singular.
    """
    if not np.diagonal(low, 0, -2, -1).all():
        raise np.linalg.LinAlgError("Singular matrix")
    if not _knows(low):
        factors = np.tril(low)
        if transpose:
            return np.asarray(np.linalg.solve(turned(factors), b))
        upper = factors[..., ::-1, ::-1]
        return np.asarray(np.linalg.solve(upper, b[..., ::-1, :])[..., ::-1, :])
    found = np.array(b, order="C")
    _apply("trsm", b"UTN" if transpose else b"UNN", np.ascontiguousarray(low), found)
    return found


def orthonormal(a: Array) -> tuple[Array, Array]:
    """Q with orthonormal rows and a lower triangular L, L Q = a, of matrices that are not taller.

    >>> [x.round(6).tolist() for x in orthonormal(np.array([[3.0, 4.0]]))]
    [[[-0.6, -0.8]], [[-5.0]]]
    """
    if not _knows(a):
        q, r = np.linalg.qr(turned(a))
        return turned(q), turned(r)
    rows = np.array(a, order="C")
    m, n = a.shape[-2:]
    matrices, status, space = flat(rows), _status(a), m * BLOCK
    scales, work = np.empty((len(matrices), m), a.dtype), np.empty((1, space), a.dtype)
    _run("geqrf", n, m, matrices, n, scales, work, space, status)
    low = lower(rows[..., :m])
    _run("orgqr", n, m, m, matrices, n, scales, work, space, status)
    return rows, low


def eigenvectors(a: Array) -> tuple[Array, Array]:
    """Eigenvectors as rows, and eigenvalues in ascending order, of symmetric (..., n, n).

    A matrix is given by its lower triangle.

    >>> [abs(x).tolist() for x in eigenvectors(np.array([[3.0, 0.0], [0.0, 2.0]]))]
    [[[0.0, 1.0], [1.0, 0.0]], [2.0, 3.0]]

    Raises:
        LinAlgError: the iteration does not end, as where an element is not finite.
    """
    if not _knows(a):
        values, vectors = np.linalg.eigh(a)
        return turned(vectors), values
    rows, n = np.array(a, order="C"), a.shape[-1]
    values, status = np.empty(a.shape[:-1], a.dtype), _status(a)
    work = np.empty((1, 1 + 6 * n + 2 * n * n), a.dtype)
    whole = np.empty((1, 3 + 5 * n), np.int32)
    _run("syevd", b"VU", n, flat(rows), n, values.reshape(len(status), n), work, work.size, whole,
         whole.size, status)  # fmt: skip
    if status.any():
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return rows, values


def turned_product(low: Array, b: Array) -> Array:
    """`low.T @ b`, of lower triangular matrices (..., n, n); what stands above has no meaning.

    >>> turned_product(np.array([[2.0, 9.0], [1.0, 4.0]]), np.eye(2))
    array([[2., 1.],
           [0., 4.]])
    """
    if not _knows(low):
        return np.asarray(turned(lower(low)) @ b)
    found = np.array(b, order="C")
    _apply("trmm", b"UTN", np.ascontiguousarray(low), found)
    return found


def product(a: Array, b: Array) -> Array:
    """`a @ b`, of as many matrices on either side.

    NumPy's own library has threads of its own, which wait busily for each other: on a machine that
    is not idle they take fifty times as long.

    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    if not _knows(a, SMALL) or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return np.asarray(a @ b)
    found = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    (m, k), n = a.shape[-2:], b.shape[-1]
    left, right = flat(np.ascontiguousarray(a)), flat(np.ascontiguousarray(b))
    # by columns: the transposed product of the transposes
    _run("gemm", b"NN", n, m, k, 1.0, right, n, left, k, 0.0, flat(found), n)
    return found
