"""Operators on the dense arrays that sparse ones are made of, on whichever device these lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.ndarray.api.methods import cast
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.layout import dense as dense_layout
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ndarray.sparse.parts import Indices
from gnomon.ops import registry


def apply_named(name: str, *inputs: Any, **given: Any) -> Any:
    """The operator `name` on dense arrays."""
    return invoke(registry.find(name).parse(given), inputs)


def on_device(values: Any, x: Any) -> Any:
    """NumPy's index array as an array on the device of `x`."""
    return Array._around(np.ascontiguousarray(values), x.context)


def picked(data: Any, which: Indices) -> Any:
    """The entries of `data` with these numbers."""
    if not len(which):
        return Array._new(dense_layout((0, *data.shape[1:]), data._dtype), data.context)
    return apply_named("take", data, on_device(which, data))


def put_rows(index: Any, data: Any, rows: int) -> Any:
    """`rows` rows that are 0 but for those of `data`, at `index`."""
    return apply_named("_put_rows", index, data, rows=rows)


def are_some(data: Any, **axis: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For NumPy: which elements are not 0, or which rows along `axis` have such."""
    if not data.size:
        return np.zeros(data.shape, np.bool_)
    found = cast(data, "bool")
    found = apply_named("max", found, **axis) if axis else found
    return np.array(found.asnumpy(), np.bool_)
