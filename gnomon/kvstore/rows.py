"""Row-sparse arrays as the numbers of their rows and the rows, in NumPy, for travelling."""

from __future__ import annotations

from typing import Any

from gnomon import ndarray as nd
from gnomon.context import cpu


def to_rows(array: Any) -> tuple[Any, Any]:
    """The numbers of a row-sparse array's rows, and the rows."""
    return array.indices.asnumpy(), array.data.asnumpy()


def of_rows(rows: tuple[Any, Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """The row-sparse array that has these rows, on the processor."""
    numbers, data = rows
    return nd.sparse.row_sparse_array((data, numbers), tuple(shape), cpu(), dtype)
