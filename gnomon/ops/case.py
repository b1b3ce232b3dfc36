"""Cases: what an operator is tried on, declared beside it; `testing.py` and a test run them all.

class CumSum(Op):
    cases = (case((2, 3), axis=1), case((0, 3), axis=0, dtype="float64"))

    def reference(self, a):
        return np.cumsum(a, self.axis, self.dtype)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from gnomon.ground.record import record

Array = np.ndarray[Any, Any]


@record(eq=False)
class Case:
    """Parameters, and inputs: arrays, or shapes of numbers drawn from `low` to `high`.

    `differentiable` are the numbers of the arguments whose gradients are compared with finite
    differences: None stands for all of floating dtype.
    """

    inputs: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0
    differentiable: tuple[int, ...] | None = None
    train: bool = False
    tolerance: float = 1e-5

    def arrays(self) -> list[Array]:
        """The inputs, the same ones each time; drawn ones are float64, and no two of them alike."""
        generator = np.random.default_rng(7)
        return [
            x if isinstance(x, np.ndarray) else generator.uniform(self.low, self.high, x)
            for x in self.inputs
        ]

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, np.shape(x))) or "scalar" for x in self.arrays())
        return " ".join([*(f"{k}={v}" for k, v in self.params.items()), shapes])


Cases = Sequence[Case]


def case(
    *inputs: Any,
    low: float = -2.0,
    high: float = 2.0,
    differentiable: Sequence[int] | None = None,
    train: bool = False,
    tolerance: float = 1e-5,
    **params: Any,
) -> Case:
    """A case of an operator; inputs are shapes (tuples) or nested lists, the rest are parameters.

    >>> str(case((2, 3), [0, 1], axis=1))
    'axis=1 2x3-2'
    """
    arrays = tuple(x if isinstance(x, tuple) else np.asarray(x) for x in inputs)
    which = None if differentiable is None else tuple(differentiable)
    return Case(arrays, params, low, high, which, train, tolerance)
