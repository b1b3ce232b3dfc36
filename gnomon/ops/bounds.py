"""Bounds of indices: refused when they are read, by an operator that runs beside the look-up.

An operator with `guard(*shapes)` has its inputs checked: the guard is an operator on data that
raises where a value is none that the operator takes. Kernels cannot raise; what they look up
meanwhile is within bounds, and is never shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.dtype import float32
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, fixed_dtypes
from gnomon.ops.op import describe
from gnomon.ops.param import Dims, param


class InBounds(HostOp):
    """An IndexError where a row of `indices` has one below `low` or not below `high`.

    Fractions do not count. No operator of the users: it stands for nothing in a graph.
    """

    name, input_names = "_in_bounds", ("indices",)

    low: Dims = param(doc="The least index of each row.")
    high: Dims = param(doc="What each row's indices are below.")
    axis: int = param(0, doc="The axis that the first row is for; the others follow.")
    types = fixed_dtypes(output=float32)

    def check(self) -> None:
        if len(self.low) != len(self.high):
            raise ShapeError(complaint(self.name, "high", f"{len(self.low)} numbers", self.high))

    def shapes(self, s: Shapes) -> None:
        s["output"] = (1,)

    def compute(self, *inputs: Array, **context: Any) -> Array:
        self.refuse(inputs[0])
        return np.zeros(1, np.float32)

    def refuse(self, indices: Array) -> None:
        """Raise an IndexError for the first index that is out of bounds."""
        rows = np.trunc(indices.reshape(len(self.low), -1))
        bounds = zip(rows, self.low, self.high, strict=True)
        for axis, (row, low, high) in enumerate(bounds, self.axis):
            outside = row[~((row >= low) & (row < high))]
            if outside.size:
                at = f"index {outside[0]:g} is out of bounds for axis {axis} with size {high}"
                raise IndexError(at)


describe(InBounds)
