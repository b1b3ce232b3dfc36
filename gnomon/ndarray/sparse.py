"""Arrays in sparse storage, and operators that know it: `mx.nd.sparse`."""

from __future__ import annotations

from typing import Any

from gnomon.ndarray import functions
from gnomon.ndarray.sparse_array import BaseSparseNDArray, CSRNDArray, RowSparseNDArray
from gnomon.ndarray.sparse_create import (
    add,
    array,
    cast_storage,
    csr_matrix,
    divide,
    empty,
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
    "multiply",
    "row_sparse_array",
    "subtract",
    "zeros",
]


def __getattr__(name: str) -> Any:
    return functions.find("sparse", name)


def __dir__() -> list[str]:
    return sorted({*__all__, *functions.names("sparse")})
