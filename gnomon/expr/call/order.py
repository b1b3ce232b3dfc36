"""order: where the elements of each row come from that are put in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import ext
from gnomon.expr.composite import Call, composite
from gnomon.expr.node import Expr, cast

Array = np.ndarray[Any, Any]


@composite
class Order(Call):
    """Where in the rows of `src` their first `count` elements in order stand.

    Equal elements stay in their order, NaN comes last, whichever way is sorted.
    """

    src: Expr
    is_ascend: bool
    count: int

    def infer(self) -> tuple[tuple[int, ...], DType]:
        if self.src.ndim != 2 or not 0 <= self.count <= self.src.shape[1] < 1 << 31:
            expected = f"rows of {self.count} to 2^31 - 1 elements"
            raise ShapeError(complaint("order", "src", expected, f"{self.src!r}"))
        return (self.src.shape[0], self.count), dt.int32

    def reference(self, *operands: Array) -> Array:
        rows = operands[0]
        if self.is_ascend:
            found = np.argsort(rows, -1, "stable")
        else:
            found = rows.shape[1] - 1 - np.argsort(rows[:, ::-1], -1, "stable")[:, ::-1]
        taken = np.take_along_axis(rows, found, -1)
        last = np.argsort(taken != taken, -1, "stable")
        return np.take_along_axis(found, last, -1)[:, : self.count].astype(np.int32)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ()


def along(src: Expr, places: Expr) -> Expr:
    """The elements of each row of `src` at its `places`, no two of which are the same.

    >>> from gnomon.expr.node import Buffer
    >>> along(Buffer((2, 5)), Buffer((2, 3), dt.int32)).shape
    (2, 3)
    """
    rows, length = src.shape
    return ext.take(ext.reshape(src, (rows * length,)), _flat(places, length))


def put_along(places: Expr, values: Expr, length: int) -> Expr:
    """Rows of `length` that hold `values` at `places`, no two of which are the same, else 0.

    >>> from gnomon.expr.node import Buffer
    >>> put_along(Buffer((2, 3), dt.int32), Buffer((2, 3)), 5).shape
    (2, 5)
    """
    rows = values.shape[0]
    flat = ext.take_grad(_flat(places, length), values, rows * length, True)
    return ext.reshape(flat, (rows, length))


def _flat(places: Expr, length: int) -> Expr:
    """Places in rows as places among all elements."""
    return ext.iota(places.shape, 0) * length + cast(places, dt.int64)
