"""LAPACK of the OpenBLAS wheel on one thread, where many cost more than they bring.

Matrices lie by rows, LAPACK reads them by columns: it works on their transposes. A batch is one
call of native code. Small ones, unless they are many triangles, and all where there is no wheel, go
to NumPy, which takes less time to call: transposed as well, and triangles as upper ones, where rows
never change places. So no size decides which are singular.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.native.serve import raw_code
from gnomon.native.words import double_bits, single_bits
from gnomon.runtime.ffi import Block, function, pointer, symbol
from gnomon.runtime.libraries.blas import library
from gnomon.runtime.libraries.lapack_code import MOST, each
from gnomon.runtime.once import once

Array = np.ndarray[Any, Any]
SMALL = 48  # columns of matrices below which NumPy is done sooner
FEW = 1 << 14  # elements of all of them below which NumPy finds factors of small ones sooner
FEWEST = 1 << 10  # the same for triangles, of which NumPy knows nothing
BLOCK = 64  # rows and columns of a part of a triangle
_ABOVE = np.triu(np.ones((BLOCK, BLOCK), np.bool_), 1)


@once
def _routine(name: str) -> int:
    """The address of a routine, 0 where there is no library."""
    found = library()
    return 0 if found is None else symbol(found, f"scipy_{name}_")


@once
def _code() -> Any:
    return function(raw_code(each).address("each"))


def _is_brief(a: Array, few: float = math.inf, small: int = SMALL) -> bool:
    """Whether NumPy does the work of matrices: they are small and few, or there are no routines."""
    brief = a.shape[-1] < small and a.size < few
    return brief or a.dtype.char not in "fd" or library() is None


def _run(name: str, *arguments: Any) -> None:
    """Call a routine for every matrix of batches: arrays go along their first axis.

    Several letters are an argument each; a float is of the kind of the first array's elements.
    """
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    if not all(x.size for x in arrays):
        return
    single = arrays[0].dtype.char == "f"
    bits = single_bits if single else double_bits
    kept = Block(MOST)
    words, steps = [], []
    for given in arguments:
        if isinstance(given, np.ndarray):
            words.append(given.__array_interface__["data"][0])
            steps.append(given.strides[0])
            continue
        if isinstance(given, float):
            given = bits(given)
        for number in given if isinstance(given, bytes) else (given,):
            kept.words[len(words)] = number
            words.append(kept.address + 8 * len(words))
            steps.append(0)
    more = MOST - len(words)
    routine = _routine(("s" if single else "d") + name)
    # what follows the arguments are the lengths of letters, 1
    block = Block([routine, len(arrays[0]), *words, *[1] * more, *steps, *[0] * more])
    _code()(pointer(block.address))


def turned(a: Array) -> Array:
    """Matrices transposed."""
    return np.swapaxes(a, -1, -2)


def flat(a: Array) -> Array:
    """All matrices in one row."""
    return a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


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
    if _is_brief(a, FEW):
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
    if _is_brief(a):
        return turned(np.linalg.inv(turned(a)))
    found, pivots, status = _factors(a)
    if status.any():
        raise np.linalg.LinAlgError("Singular matrix")
    # rows that changed places, times a lower triangle, times an upper one with ones on its diagonal
    _invert(flat(found), b"U", b"N")
    _invert(flat(found), b"L", b"U")
    products = lower(found)
    _apply("trmm", b"LNU", found, products)
    count, n = pivots.shape
    # the places of rows, exchanged as the rows were
    places = np.tile(np.arange(n, dtype=a.dtype), (count, 1))
    _run("laswp", 1, places, n, 1, n, pivots, 1)
    flat(found)[np.arange(count)[:, None], places.astype(np.intp)] = flat(products)
    return found


def _factors(a: Array) -> tuple[Array, Array, Array]:
    """Factors of matrices, by columns, and of each the rows they changed with and the status."""
    found, n = np.array(a, order="C"), a.shape[-1]
    status = _status(a)
    pivots = np.empty((len(status), n), np.int32)
    _run("getrf", n, n, flat(found), n, pivots, status)
    return found, pivots, status


def _status(a: Array) -> Array:
    return np.zeros(math.prod(a.shape[:-2]), np.int32)


def _shared(size: int, kind: Any, count: int) -> tuple[Array, int]:
    """Memory to work with, the same for all of so many matrices, and its size."""
    return np.broadcast_to(np.empty(size, kind), (count, size)), size


def _invert(matrices: Array, triangle: bytes, diagonal: bytes) -> None:
    """Invert triangles (by columns) in place, by halves, since products are what is fast."""
    order, lead = matrices.shape[-1], matrices.strides[-2] // matrices.itemsize
    if order <= BLOCK:
        return _run("trtri", triangle + diagonal, order, matrices, lead, _status(matrices))
    half = order // 2
    left, right = matrices[:, :half, :half], matrices[:, half:, half:]
    between = matrices[:, half:, :half]
    if triangle == b"L":
        left, right, between = right, left, matrices[:, :half, half:]
    for side, factor, scale in ((b"L", left, 1.0), (b"R", right, -1.0)):
        _invert(factor, triangle, diagonal)
        sizes = between.shape[:0:-1]
        _run("trmm", side + triangle + b"N" + diagonal, *sizes, scale, factor, lead, between, lead)
    return None


def _apply(name: str, kind: bytes, triangles: Array, b: Array) -> None:
    """Multiply or divide `b` in place from the left: by triangles that are of a kind by columns."""
    m, n = b.shape[-1:-3:-1]
    _run(name, b"R" + kind, m, n, 1.0, flat(triangles), n, flat(b), m)


def slogdet(a: Array) -> tuple[Array, Array]:
    """The sign of the determinants of matrices (..., n, n), and the logarithms of their sizes.

    >>> [float(x) for x in slogdet(np.array([[0.0, 2.0], [1.0, 0.0]]))]
    [-1.0, 0.6931471805599453]
    """
    if _is_brief(a):
        found = np.linalg.slogdet(turned(a))
        return np.asarray(found[0]), np.asarray(found[1])
    factors, pivots, _ = _factors(a)
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
    if _is_brief(low, FEWEST):
        return turned(np.linalg.inv(turned(found)))
    _invert(flat(found), b"U", b"N")
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
    if _is_brief(low, FEWEST):
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
    if _is_brief(a):
        q, r = np.linalg.qr(turned(a))
        return turned(q), turned(r)
    rows, (m, n) = np.array(a, order="C"), a.shape[-2:]
    matrices, status = flat(rows), _status(a)
    scales = np.empty((len(status), m), a.dtype)
    work = _shared(m * BLOCK, a.dtype, len(status))
    _run("geqrf", n, m, matrices, n, scales, *work, status)
    low = lower(rows[..., :m])
    _run("orgqr", n, m, m, matrices, n, scales, *work, status)
    return rows, low


def eigenvectors(a: Array) -> tuple[Array, Array]:
    """Eigenvectors as rows, and eigenvalues in ascending order, of symmetric (..., n, n).

    A matrix is given by its lower triangle.

    >>> [abs(x).tolist() for x in eigenvectors(np.array([[3.0, 0.0], [0.0, 2.0]]))]
    [[[0.0, 1.0], [1.0, 0.0]], [2.0, 3.0]]

    Raises:
        LinAlgError: the iteration does not end, as where an element is not finite.
    """
    if _is_brief(a, small=24):  # from 25 on threads of NumPy's library wait for each other
        values, vectors = np.linalg.eigh(a)
        return turned(vectors), values
    rows, n, status = np.array(a, order="C"), a.shape[-1], _status(a)
    values = np.empty(a.shape[:-1], a.dtype)
    sizes = (1 + 6 * n + 2 * n * n, a.dtype), (3 + 5 * n, np.int32)
    work, more = (_shared(size, kind, len(status)) for size, kind in sizes)
    found = values.reshape(len(status), n)
    _run("syevd", b"VU", n, flat(rows), n, found, *work, *more, status)
    if status.any():
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return rows, values


def turned_product(low: Array, b: Array) -> Array:
    """`low.T @ b`, of lower triangular matrices (..., n, n); what stands above has no meaning.

    >>> turned_product(np.array([[2.0, 9.0], [1.0, 4.0]]), np.eye(2))
    array([[2., 1.],
           [0., 4.]])
    """
    if _is_brief(low, FEWEST):
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
    if _is_brief(a) or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return np.asarray(a @ b)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    found = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    m, k, n = *a.shape[-2:], b.shape[-1]
    # by columns: the transposed product of the transposes
    _run("gemm", b"NN", n, m, k, 1.0, flat(b), n, flat(a), k, 0.0, flat(found), n)
    return found
