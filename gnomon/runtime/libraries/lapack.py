"""LAPACK of the OpenBLAS wheel on one thread, where many cost more than they bring.

Matrices lie by rows, LAPACK reads them by columns: it works on their transposes. A batch of
triangles is one call of native code. Small matrices, unless they are many triangles, and all where
there is no wheel, go to NumPy, which takes less time to call: transposed as well, and triangles as
upper ones, where rows never change places. So no size decides which are singular.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator
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
BLOCK = 64  # rows and columns of a part of a triangle
FEW = 1 << 14  # elements of all of them below which NumPy finds factors of small ones sooner
FEWEST = 1 << 10  # the same for triangles, of which NumPy knows nothing
_ABOVE = np.triu(np.ones((BLOCK, BLOCK), np.bool_), 1)


def _address(name: str) -> int:
    found = library()
    return 0 if found is None else symbol(found, f"scipy_{name}_")


@once
def _routine(name: str) -> Any:
    """A routine by its name, or None where there is no library."""
    address = _address(name)
    return ctypes.CFUNCTYPE(None)(address) if address else None


def _known(name: str, a: Array, small: int = SMALL, few: float = math.inf) -> Any:
    """The routine for the dtype of matrices; None where NumPy does their work: small and few."""
    letter = {"f": "s", "d": "d"}.get(a.dtype.char)
    brief = a.shape[-1] < small and a.size < few
    return None if letter is None or brief else _routine(letter + name)


@once
def _code() -> Any:
    return function(raw_code(each).address("each"))


def _run(name: str, *arguments: Any) -> None:
    """Call a routine for every matrix of batches: arrays go along their first axis.

    Several letters are an argument each; a float is of the kind of the first array's elements.
    """
    arrays = [x for x in arguments if type(x) is np.ndarray]
    known = [None if type(x) is np.ndarray else x for x in arguments]
    made, places, _ = _prepared(name, arrays[0].dtype.char, *known)
    words = made.copy()
    words[1] = len(arrays[0])
    for k, x in zip(places, arrays, strict=True):
        if not x.size:
            return
        words[k], words[k + MOST] = x.__array_interface__["data"][0], x.strides[0]
    block = Block(words)
    _code()(pointer(block.address))


@functools.lru_cache(1024)
def _prepared(name: str, kind: str, *known: Any) -> tuple[list[int], list[int], Block]:
    """The words of a `Batch` where all but arrays are known; where these go; what is kept."""
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
    return words, places, kept


def turned(a: Array) -> Array:
    """Matrices transposed."""
    return np.swapaxes(a, -1, -2)


def _each(a: Array) -> Iterator[Any]:
    """The address of every matrix; LinAlgError where one cannot be worked with."""
    for matrix in a.reshape(-1, *a.shape[-2:]) if a.size else ():
        yield ctypes.c_void_p(matrix.ctypes.data)


def _int(n: int = 0) -> Any:
    return ctypes.c_int32(n)


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
    if _known("potrf", a, few=FEW) is None:
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
    factor = _known("getrf", a)
    if factor is None:
        return turned(np.linalg.inv(turned(a)))
    found = np.array(a, order="C")
    pivots = np.empty((*a.shape[:-2], a.shape[-1]), np.int32)
    n, trouble = ctypes.byref(_int(a.shape[-1])), _int()
    rows = pivots.reshape(-1, a.shape[-1])
    for matrix, row in zip(_each(found), rows, strict=False):
        factor(n, n, matrix, n, ctypes.c_void_p(row.ctypes.data), ctypes.byref(trouble))
        if trouble.value:
            raise np.linalg.LinAlgError("Singular matrix")
    # rows that changed places, times a lower triangle, times an upper one with ones on its diagonal
    _invert(found, b"U", b"N")
    _invert(found, b"L", b"U")
    products = lower(found)
    _apply("trmm", b"LNU", found, products)
    flat = (-1, *a.shape[-2:])
    for matrix, moved, row in zip(found.reshape(flat), products.reshape(flat), rows, strict=True):
        matrix[_order(row)] = moved
    return found


def _order(pivots: Array) -> list[int]:
    """Where each row goes when it changed places with that of its pivot, the first row last."""
    order = list(range(len(pivots)))
    for k, other in enumerate(pivots.tolist()):
        order[k], order[other - 1] = order[other - 1], order[k]
    return order


def _number(a: Array, number: float) -> Any:
    return ctypes.byref((ctypes.c_float if a.dtype.char == "f" else ctypes.c_double)(number))


def _invert(matrices: Array, triangle: bytes, diagonal: bytes) -> None:
    """Invert triangles (by columns) in place, by halves, since products are what is fast."""
    if matrices.shape[-1] <= BLOCK:
        n = matrices.shape[-1]
        _run("trtri", triangle + diagonal, n, flat(matrices), n, _status(matrices))
        return
    invert, multiply = _known("trtri", matrices), _known("trmm", matrices)
    lead, status = ctypes.byref(_int(matrices.shape[-1])), ctypes.byref(_int())
    one, minus = _number(matrices, 1), _number(matrices, -1)
    column, row = matrices.strides[-2:]

    def part(corner: int, order: int) -> None:
        n, half = _int(order), order // 2
        if order <= BLOCK:
            place = ctypes.c_void_p(corner)
            invert(triangle, diagonal, ctypes.byref(n), place, lead, status, _ONE, _ONE)
            return
        ends = (corner, half), (corner + half * (column + row), order - half)
        for end in ends:
            part(*end)
        (left, m), (right, n) = ends if triangle == b"U" else ends[::-1]
        size = ctypes.byref(_int(m)), ctypes.byref(_int(n))
        between = ctypes.c_void_p(corner + half * (column if triangle == b"U" else row))
        for side, factor, scale in ((b"L", left, one), (b"R", right, minus)):
            place = ctypes.c_void_p(factor)
            multiply(side, triangle, b"N", diagonal, *size, scale, place, lead, between, lead,
                     _ONE, _ONE, _ONE, _ONE)  # fmt: skip

    for matrix in _each(matrices):
        part(matrix.value, matrices.shape[-1])


def _apply(name: str, kind: bytes, triangles: Array, b: Array) -> None:
    """Multiply or divide `b` in place from the left: by triangles that are of a kind by columns."""
    m, n = b.shape[-1:-3:-1]
    _run(name, b"R" + kind, m, n, 1.0, flat(triangles), n, flat(b), m)


def slogdet(a: Array) -> tuple[Array, Array]:
    """The sign of the determinants of matrices (..., n, n), and the logarithms of their sizes.

    >>> [float(x) for x in slogdet(np.array([[0.0, 2.0], [1.0, 0.0]]))]
    [-1.0, 0.6931471805599453]
    """
    factor = _known("getrf", a)
    if factor is None:
        found = np.linalg.slogdet(turned(a))
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
    if _known("trtri", low, few=FEWEST) is None:
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
    if _known("trsm", low, few=FEWEST) is None:
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
    reduce, expand = _known("geqrf", a), _known("orgqr", a)
    if reduce is None:
        q, r = np.linalg.qr(turned(a))
        return turned(q), turned(r)
    rows = np.array(a, order="C")
    m, n, space = (ctypes.byref(_int(k)) for k in (*a.shape[-2:], a.shape[-2] * BLOCK))
    status = ctypes.byref(_int())
    room, scales = (np.empty((*shape, a.shape[-2]), a.dtype) for shape in ((BLOCK,), a.shape[:-2]))
    work = ctypes.c_void_p(room.ctypes.data)
    for matrix, scale in zip(_each(rows), _each(scales[..., None]), strict=False):
        reduce(n, m, matrix, n, scale, work, space, status)
    low = lower(rows[..., : a.shape[-2]])
    for matrix, scale in zip(_each(rows), _each(scales[..., None]), strict=False):
        expand(n, m, m, matrix, n, scale, work, space, status)
    return rows, low


def eigenvectors(a: Array) -> tuple[Array, Array]:
    """Eigenvectors as rows, and eigenvalues in ascending order, of symmetric (..., n, n).

    A matrix is given by its lower triangle.

    >>> [abs(x).tolist() for x in eigenvectors(np.array([[3.0, 0.0], [0.0, 2.0]]))]
    [[[0.0, 1.0], [1.0, 0.0]], [2.0, 3.0]]

    Raises:
        LinAlgError: the iteration does not end, as where an element is not finite.
    """
    solve = _known("syevd", a, 24)  # from 25 on threads of NumPy's library wait for each other
    if solve is None:
        values, vectors = np.linalg.eigh(a)
        return turned(vectors), values
    rows, order = np.array(a, order="C"), a.shape[-1]
    values = np.empty(a.shape[:-1], a.dtype)
    work = np.empty(1 + 6 * order + 2 * order * order, a.dtype), np.empty(3 + 5 * order, np.int32)
    n, status = ctypes.byref(_int(order)), _int()
    rooms = [x for w in work for x in (ctypes.c_void_p(w.ctypes.data), ctypes.byref(_int(w.size)))]
    for matrix, found in zip(_each(rows), _each(values[..., None]), strict=False):
        solve(b"V", b"U", n, matrix, n, found, *rooms, ctypes.byref(status), _ONE, _ONE)
        if status.value:
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return rows, values


def turned_product(low: Array, b: Array) -> Array:
    """`low.T @ b`, of lower triangular matrices (..., n, n); what stands above has no meaning.

    >>> turned_product(np.array([[2.0, 9.0], [1.0, 4.0]]), np.eye(2))
    array([[2., 1.],
           [0., 4.]])
    """
    if _known("trmm", low, few=FEWEST) is None:
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
    multiply = _known("gemm", a)
    if multiply is None or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return np.asarray(a @ b)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    found = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    m, k, n = (ctypes.byref(_int(size)) for size in (*a.shape[-2:], b.shape[-1]))
    one, zero = _number(a, 1), _number(a, 0)
    for left, right, out in zip(_each(a), _each(b), _each(found), strict=False):
        # by columns: the transposed product of the transposes
        multiply(b"N", b"N", n, m, k, one, right, n, left, k, zero, out, n, _ONE, _ONE)
    return found


_ONE = ctypes.c_size_t(1)  # the length of a letter
