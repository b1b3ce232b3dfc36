"""Arrays in sparse storage, and operators that know it: `mx.nd.sparse`."""

from gnomon.ndarray.api.functions import attributes
from gnomon.ndarray.sparse.arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray
from gnomon.ndarray.sparse.creation import (
    add,
    array,
    cast_storage,
    csr_matrix,
    divide,
    empty,
    gs_retain,
    multiply,
    row_sparse_array,
    subtract,
    zeros,
)

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
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

__getattr__, __dir__ = attributes("sparse", __all__)
