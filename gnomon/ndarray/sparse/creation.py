"""Making sparse arrays: of their parts, of other arrays, empty."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import ParamError, ShapeError, complaint, shown
from gnomon.context import Context, current_context
from gnomon.ndarray import create
from gnomon.ndarray.api import elementwise, serialize
from gnomon.ndarray.api.functions import context_of, find
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.sparse.apply import cast
from gnomon.ndarray.sparse.arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    from_record,
)

__all__ = [
    "add",
    "array",
    "cast_storage",
    "csr_matrix",
    "divide",
    "empty",
    "gs_retain",
    "multiply",
    "row_sparse_array",
    "subtract",
    "zeros",
]


def csr_matrix(
    arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None
) -> CSRNDArray:
    """A matrix that keeps its values row by row.

    `arg1` is a shape `(rows, columns)`; `(data, indices, indptr)`: values, their columns, and where
    each row starts among them; `(data, (row, col))`: values and their places; or a dense, sparse or
    NumPy array, nested lists, a matrix of scipy.

    >>> csr_matrix(([1, 2], ([0, 1], [1, 0]))).asnumpy()
    array([[0., 1.],
           [2., 0.]], dtype=float32)

    Raises:
        ParamError: the parts do not make a matrix; says what should hold.
        ShapeError: other than two axes, or not those of `shape`.
    """
    if not isinstance(arg1, tuple):
        return _of_array(arg1, "csr", shape, ctx, dtype)
    if len(arg1) == 2 and not isinstance(arg1[1], (tuple, list)):
        return storage_types.made("csr", _sizes(arg1), dtypes.wanted(dtype), _where(ctx))
    if len(arg1) == 2:
        return _of_places(arg1[0], *arg1[1], shape, ctx, dtype)
    if len(arg1) != 3:
        expected = "(rows, columns), (data, (row, col)) or (data, indices, indptr)"
        raise ParamError(complaint("csr_matrix", "arg1", expected, f"{len(arg1)} parts"))
    data, columns, starts = _values(arg1[0], dtype), _integers(arg1[1]), _integers(arg1[2])
    sizes = (len(starts) - 1, int(columns.max(initial=-1)) + 1) if shape is None else _sizes(shape)
    return _checked(serialize.Sparse("csr", sizes, data, (starts, columns)), ctx, "csr_matrix")


def row_sparse_array(
    arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None
) -> RowSparseNDArray:
    """An array that keeps only some of its rows.

    `arg1` is a shape; `(data, indices)`: rows and their numbers; or a dense, sparse or NumPy array,
    nested lists.

    >>> row_sparse_array(([[1, 2]], [2]), shape=(3, 2)).asnumpy()[2]
    array([1., 2.], dtype=float32)

    Raises:
        ParamError: the parts do not make an array; says what should hold.
        ShapeError: the shape is not `shape`.
    """
    if not isinstance(arg1, tuple):
        return _of_array(arg1, "row_sparse", shape, ctx, dtype)
    if len(arg1) != 2 or isinstance(arg1[0], (int, np.integer)):
        return storage_types.made("row_sparse", _sizes(arg1), dtypes.wanted(dtype), _where(ctx))
    data, rows = _values(arg1[0], dtype), _integers(arg1[1])
    sizes = _sizes(shape) if shape is not None else (int(rows.max(initial=-1)) + 1, *data.shape[1:])
    if len(rows) == 0 and data.size == 0:
        data = data.reshape((0, *sizes[1:]))
    seen, counts = np.unique(rows, return_counts=True)
    if len(seen) != len(rows):
        got = f"{seen[counts.argmax()]} {counts.max()} times"
        raise ParamError(complaint("row_sparse_array", "indices", "each row once", got))
    return _checked(serialize.Sparse("row_sparse", sizes, data, (rows,)), ctx, "row_sparse_array")


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> BaseSparseNDArray:
    """A copy of a sparse array, or a `csr` array of a matrix of scipy.

    Raises:
        TypeError: the source is neither; `tostype` makes a dense array sparse.
    """
    if isinstance(source_array, BaseSparseNDArray):
        return create.array(source_array, ctx, dtype)
    if hasattr(source_array, "tocsr"):
        return csr_matrix(source_array, None, ctx, dtype)
    expected = "a sparse array (tostype makes one), or a matrix of scipy"
    got = type(source_array).__name__
    raise TypeError(complaint("sparse.array", "source_array", expected, got))


def zeros(
    stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any
) -> Any:
    """An array of zeros in any storage.

    >>> zeros("row_sparse", (3, 2)).indices.shape
    (0,)

    Raises:
        ParamError: there is no such storage.
    """
    return create.zeros(shape, ctx, dtype, stype, **kwargs)


def empty(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """An array in any storage; a sparse one keeps nothing.

    Raises:
        ParamError: there is no such storage.
    """
    return create.empty(shape, ctx, dtype, stype)


def cast_storage(data: Any = None, stype: Any = None, out: Any = None, name: Any = None) -> Any:
    """An array in another storage: 'default', 'csr' or 'row_sparse'.

    Raises:
        ParamError: there is no such storage, or no way from one sparse storage to the other.
    """
    if not isinstance(data, Array):
        raise TypeError(complaint("cast_storage", "data", "an array", shown(data)))
    found = cast(data, stype)
    if out is None:
        return found
    out[:] = found
    return out


# --- what is given ----------------------------------------------------------------------------


def _where(ctx: Any) -> Context:
    return context_of(ctx) or current_context()


def _sizes(shape: Any) -> tuple[int, ...]:
    """A shape; ShapeError where it is none."""
    try:
        sizes = tuple(map(index, shape))
    except TypeError:
        raise ShapeError(complaint("sparse array", "shape", "whole numbers", repr(shape))) from None
    if min(sizes, default=0) < 0:
        raise ShapeError(complaint("sparse array", "shape", "no negative size", sizes))
    return sizes


def _values(source: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Values as a NumPy array of their own: of `dtype`, of their own one, or float32 for lists."""
    if dtype is None:
        known = isinstance(source, (Array, np.ndarray))
        dtype = source.dtype if known else np.float32
    found: np.ndarray[Any, Any] = create.array(source, dtype=dtype).asnumpy()
    return found


def _integers(source: Any) -> np.ndarray[Any, Any]:
    """Indices as a NumPy array."""
    try:
        values = source.asnumpy() if isinstance(source, Array) else np.asarray(source)
    except ValueError:  # lists of different lengths
        values = np.empty(0, object)
    if values.dtype.kind not in "iuf":
        expected = "whole numbers"
        raise ParamError(complaint("sparse array", "indices", expected, shown(source)))
    if (values != np.trunc(values)).any():
        got = values[values != np.trunc(values)][0]
        raise ParamError(complaint("sparse array", "indices", "whole numbers", got))
    return values.astype(np.int64)


def _checked(found: serialize.Sparse, ctx: Any, where: str) -> Any:
    """The array of parts that go together; ParamError where they do not."""
    if wrong := serialize.fault(found):
        raise ParamError(complaint(where, "arg1", *wrong))
    return from_record(found, _where(ctx))


def _of_places(data: Any, row: Any, col: Any, shape: Any, ctx: Any, dtype: Any) -> Any:
    """A matrix of values at places in any order; those of one place add up."""
    values, rows, columns = _values(data, dtype), _integers(row), _integers(col)
    if not values.shape == rows.shape == columns.shape or values.ndim != 1:
        expected = "as many rows and columns as values, in a line"
        got = f"{values.shape}, {rows.shape} and {columns.shape}"
        raise ParamError(complaint("csr_matrix", "arg1", expected, got))
    wide = (int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1)
    sizes = wide if shape is None else _sizes(shape)
    if len(sizes) != 2:
        raise ShapeError(complaint("csr_matrix", "shape", "two sizes", sizes))
    outside = (rows < 0) | (rows >= sizes[0]) | (columns < 0) | (columns >= sizes[1])
    if outside.any():
        at = int(outside.argmax())
        got = f"({rows[at]}, {columns[at]}) at {at}"
        raise ParamError(complaint("csr_matrix", "arg1", f"places within shape {sizes}", got))
    places, which = np.unique(rows * max(sizes[1], 1) + columns, return_inverse=True)
    sums = np.zeros(len(places), values.dtype)
    np.add.at(sums, which, values)
    rows, columns = np.divmod(places, max(sizes[1], 1))
    starts = np.searchsorted(rows, np.arange(sizes[0] + 1))
    found = serialize.Sparse("csr", sizes, sums, (starts, columns))
    return _checked(found, ctx, "csr_matrix")


def _of_array(source: Any, stype: str, shape: Any, ctx: Any, dtype: Any) -> Any:
    """An array of all elements, or a sparse one, in the storage `stype`."""
    where = "csr_matrix" if stype == "csr" else "row_sparse_array"
    if hasattr(source, "tocsr"):
        matrix = source.tocsr()
        sizes = matrix.shape if shape is None else shape
        made = csr_matrix((matrix.data, matrix.indices, matrix.indptr), sizes, ctx, dtype)
        return made if stype == "csr" else cast(cast(made, "default"), stype)
    if isinstance(source, BaseSparseNDArray) and source.stype != stype:
        expected = f"a dense or {stype} array"
        raise ParamError(complaint(where, "arg1", expected, f"a {source.stype} array"))
    if not isinstance(source, Array):
        source = Array._around(_values(source, dtype), _where(ctx))
    if shape is not None and tuple(shape) != source.shape:
        raise ShapeError(complaint(where, "shape", f"shape {source.shape} of arg1", tuple(shape)))
    return cast(create.array(source, ctx, dtype), stype)


add = elementwise.add
subtract = elementwise.subtract
multiply = elementwise.multiply
divide = elementwise.divide


def gs_retain(data: Any, indices: Any, out: Any = None, name: str | None = None) -> Any:
    """The rows of `data` that `indices` name, as `retain` gives them."""
    return find("sparse", "retain")(data, indices, out=out, name=name)
