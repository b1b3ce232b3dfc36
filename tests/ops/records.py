"""One record an operator instance: its inputs and what NumPy says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gnomon.ops import Op, find


@dataclass(frozen=True)
class Record:
    """An operator with parameters, inputs (shapes, or arrays), and its outputs by NumPy."""

    name: str
    inputs: tuple[Any, ...]
    reference: Callable[..., Any] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0
    differentiable: tuple[int, ...] | None = None
    train: bool = False

    def __str__(self) -> str:
        params = ",".join(f"{k}={v}" for k, v in self.params.items())
        shapes = "-".join("x".join(map(str, np.shape(a))) for a in self.arrays())
        return f"{self.name}({params}) {shapes}"

    def op(self) -> Op:
        """The operator."""
        return find(self.name).parse(self.params)

    def arrays(self) -> list[np.ndarray]:
        """The inputs: given arrays themselves, and numbers of `low` to `high` for shapes."""
        generator = np.random.default_rng(7)
        return [
            x if isinstance(x, np.ndarray) else generator.uniform(self.low, self.high, x)
            for x in self.inputs
        ]


def record(name: str, *inputs: Any, reference=None, **more: Any) -> Record:
    """A record; what is not one of its own fields is a parameter of the operator."""
    own = {k: more.pop(k) for k in ("low", "high", "differentiable", "train") if k in more}
    arrays = tuple(i if isinstance(i, tuple) else np.asarray(i) for i in inputs)
    return Record(name, arrays, reference, more, **own)
