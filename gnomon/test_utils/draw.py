"""Random shapes, arrays and matrices to test with; they follow NumPy's and Python's seeds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import ParamError, complaint
from gnomon.ndarray.sparse import csr_matrix, row_sparse_array
from gnomon.test_utils.tolerance import default_dtype

Array = np.ndarray[Any, Any]


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A shape of two axes, each of 1 (or 0) to its number."""
    return _shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> tuple[int, ...]:
    """A shape of three axes."""
    return _shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A shape of `num_dim` axes of up to `dim`.

    >>> len(rand_shape_nd(4))
    4
    """
    return _shape((dim,) * num_dim, allow_zero_size)


def _shape(most: Sequence[int], allow_zero_size: bool) -> tuple[int, ...]:
    return tuple(int(np.random.randint(1 - allow_zero_size, n + 1)) for n in most)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """A place with `x_low <= x < x_high` and `y_low <= y < y_high`."""
    return int(np.random.randint(x_low, x_high)), int(np.random.randint(y_low, y_high))


def random_arrays(*shapes: Sequence[int]) -> Any:
    """Normal numbers in float32: one array, or a list where there are several shapes."""
    arrays = [_filled(np.random.randn, shape) for shape in shapes]
    return arrays if len(arrays) > 1 else arrays[0]


def random_uniform_arrays(*shapes: Sequence[int], **kwargs: Any) -> list[Array]:
    """Numbers from `low` to `high` (0 and 1) in `dtype` (float32)."""
    low, high = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0)
    dtype = kwargs.pop("dtype", default_dtype())
    return [np.random.uniform(low, high, size=shape).astype(dtype) for shape in shapes]


def _filled(draw: Callable[..., Any], shape: Sequence[int]) -> Any:
    return np.asarray(draw(*shape), default_dtype()) if shape else default_dtype()(draw())


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """`k` different members of `population`, in the order they stand there."""
    return [population[i] for i in sorted(random.sample(range(len(population)), k))]


def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Any = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Any = None,
) -> Any:
    """An array of numbers from -1 to 1; in sparse storage from 0 to 1, a part `density` of them."""
    if stype == "default":
        return nd.array(np.random.uniform(-1, 1, size=shape), dtype=dtype, ctx=ctx)
    return create_sparse_array(
        shape,
        stype,
        dtype=dtype,
        modifier_func=modifier_func,
        density=density,
        shuffle_csr_indices=shuffle_csr_indices,
        ctx=ctx,
    )


def rand_sparse_ndarray(
    shape: Sequence[int],
    stype: str,
    density: float | None = None,
    dtype: Any = None,
    distribution: str | None = None,
    data_init: float | None = None,
    rsp_indices: Any = None,
    modifier_func: Any = None,
    shuffle_csr_indices: bool = False,
    ctx: Any = None,
) -> tuple[Any, tuple[Array, ...]]:
    """A sparse array and what it is made of: (data, rows), or (data, indptr, columns).

    `distribution` of csr is 'uniform', or 'powerlaw': twice as many values in each further row.
    """
    if stype == "row_sparse":
        array = create_sparse_array(
            shape, stype, data_init, rsp_indices, dtype, modifier_func, density, ctx=ctx
        )
        return array, (array.data.asnumpy(), array.indices.asnumpy())
    if stype != "csr":
        raise ParamError(complaint("rand_sparse_ndarray", "stype", "csr or row_sparse", stype))
    if distribution == "powerlaw":
        dense = _doubling(shape, 0.5 if density is None else density)
        array = csr_matrix(nd.array(dense, dtype=dtype, ctx=ctx))
    else:
        array = create_sparse_array(
            shape, stype, data_init, None, dtype, modifier_func, density, shuffle_csr_indices, ctx
        )
    return array, (array.data.asnumpy(), array.indptr.asnumpy(), array.indices.asnumpy())


def _doubling(shape: Sequence[int], density: float) -> Array:
    """1, 2, 4, ... values in the rows, up to a part `density` of all."""
    rows, columns = shape
    left, dense = int(rows * columns * density), np.zeros((rows, columns))
    for row in range(rows):
        count = min(2**row, columns, left)
        dense[row, :count] = np.random.uniform(0.001, 2, count)
        left -= count
    return dense


def create_sparse_array(
    shape: Sequence[int],
    stype: str,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Any = None,
    density: float | None = 0.5,
    shuffle_csr_indices: bool = False,
    ctx: Any = None,
) -> Any:
    """A sparse array: `data_init` everywhere it holds a value, or random numbers.

    `rsp_indices` are the rows of a row-sparse one; `modifier_func` is applied to each value.
    """
    dtype = np.dtype(default_dtype() if dtype is None else dtype)
    density = float(np.random.rand()) if density is None else density
    if stype == "row_sparse":
        rows = _rows(shape[0], density) if rsp_indices is None else np.sort(np.asarray(rsp_indices))
        values = _values((len(rows), *shape[1:]), data_init, modifier_func).astype(dtype)
        return row_sparse_array((values, rows), shape=tuple(shape), dtype=dtype, ctx=ctx)
    if stype != "csr":
        raise ParamError(complaint("create_sparse_array", "stype", "csr or row_sparse", stype))
    dense = _values(shape, data_init, modifier_func) * (np.random.rand(*shape) < density)
    array = csr_matrix(nd.array(dense, dtype=dtype, ctx=ctx))
    return shuffle_csr_column_indices(array) if shuffle_csr_indices else array


def create_sparse_array_zd(
    shape: Sequence[int],
    stype: str,
    density: float,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Any = None,
    shuffle_csr_indices: bool = False,
) -> Any:
    """`create_sparse_array`; a `density` of 0 gives an array without values."""
    if stype == "row_sparse" and density == 0:
        rsp_indices = np.zeros(0, np.int64)
    return create_sparse_array(
        shape, stype, data_init, rsp_indices, dtype, modifier_func, density, shuffle_csr_indices
    )


def _rows(count: int, density: float) -> Array:
    return np.flatnonzero(np.random.rand(count) < density)


def _values(shape: Sequence[int], data_init: float | None, modifier: Any) -> Array:
    values = np.random.rand(*shape) if data_init is None else np.full(shape, float(data_init))
    return values if modifier is None else np.vectorize(modifier, otypes=[float])(values)


def shuffle_csr_column_indices(csr: Any) -> Any:
    """The same values of a csr array, those of each row in another order."""
    data, indices, indptr = (x.asnumpy() for x in (csr.data, csr.indices, csr.indptr))
    for start, stop in itertools.pairwise(indptr):
        order = start + np.random.permutation(stop - start)
        data[start:stop], indices[start:stop] = data[order], indices[order]
    return csr_matrix((data, indices, indptr), shape=csr.shape, dtype=csr.dtype)


def assign_each(the_input: Any, function: Any) -> Array:
    """`function` of each element."""
    if function is None:
        return np.array(the_input)
    return np.vectorize(function)(the_input)


def assign_each2(input1: Any, input2: Any, function: Any) -> Array:
    """`function` of each pair of elements."""
    if function is None:
        return np.array(input1)
    return np.vectorize(function)(input1, input2)


def create_vector(size: int, dtype: Any = np.int64) -> Any:
    """0, 1, 2 and so on."""
    return nd.array(np.arange(size), dtype=dtype)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> Any:
    """Each row full of its number."""
    return nd.array(np.repeat(np.arange(rows)[:, None], columns, 1), dtype=dtype)


def get_identity_mat(size: int) -> Any:
    """The identity of `size` rows."""
    return nd.array(np.eye(size))


def get_identity_mat_batch(size: int) -> Any:
    """Two identities of `size` rows, one upon the other."""
    return nd.array(np.stack([np.eye(size)] * 2))


def new_matrix_with_real_eigvals_2d(n: int) -> Array:
    """A matrix of `n` rows whose eigenvalues are real."""
    q = new_orthonormal_matrix_2d(n)
    return q @ np.triu(np.random.uniform(-1, 1, (n, n))) @ q.T  # Schur's form


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> Array:
    """Matrices in the last two axes of `shape` whose eigenvalues are real."""
    return _stacked(shape, new_matrix_with_real_eigvals_2d)


def new_sym_matrix_with_real_eigvals_2d(n: int) -> Array:
    """A symmetric matrix of `n` rows."""
    a = np.random.uniform(-1, 1, (n, n))
    return (a + a.T) / 2


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> Array:
    """Symmetric matrices in the last two axes of `shape`."""
    return _stacked(shape, new_sym_matrix_with_real_eigvals_2d)


def new_orthonormal_matrix_2d(n: int) -> Array:
    """A matrix of `n` rows whose inverse is its transpose."""
    return np.linalg.qr(np.random.uniform(-1, 1, (n, n)))[0] if n else np.zeros((0, 0))


def _stacked(shape: Sequence[int], make: Callable[[int], Array]) -> Array:
    count = int(np.prod(shape[:-2]))
    return np.array([make(shape[-1]) for _ in range(count)]).reshape(shape)
