"""Statements on arrays, the same for every library that has arrays.

A step of a row "64 ..." is 64 operators, each on the result of the one before, that nobody waits
for; of "one a+b", an operator and the wait for it. A row "call X" is the statement X of
`nd_small.py` that nobody waits for, "wait X" the same and its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from nd_small import STATEMENTS, statement
from protocol import Step, serve

MANY, ETA, LAM = 64, 0.05, 0.01


def one(a: Any, b: Any) -> None:
    """An operator, and its result."""
    made = a + b
    ready = getattr(made, "wait_to_read", None)
    if ready is not None:
        ready()


def pipelined(a: Any, b: Any) -> None:
    """Operators that nobody waits for."""
    x = a
    for _ in range(MANY):
        x = x + b


def in_place(a: Any, b: Any) -> None:
    """Operators that write into what they read."""
    for _ in range(MANY):
        a += b


def sgd(w: Any, g: Any) -> None:
    """The statement of stochastic gradient descent."""
    w[:] = -ETA * (g + LAM * w)


def twenty(a: Any, b: Any) -> None:
    """A function of twenty element-wise operators, and its result."""
    x = a
    for _ in range(10):
        x = x * 0.5
        x = x + b
    one(x, b)


ROWS = {"one a+b": one, "64 a+b": pipelined, "64 a+=b": in_place, "sgd": sgd, "twenty": twenty}


def worker(
    about: str, make: Callable[[Any], Any], wait: Step, only: str = "", nd: Any = None
) -> None:
    """Be the worker of a library whose arrays are made by `make` of NumPy's.

    `nd` is its namespace, where that has MXNet's names.
    """

    def setup(row: str, n: int) -> tuple[Step, Step, dict[str, Any]]:
        if only and row != only:
            raise ValueError(f"has nothing but {only}")
        how, _, name = row.partition(" ")
        if nd is not None and name in STATEMENTS:
            return statement(nd, name, n, how == "wait"), wait, {}
        a, b = make(np.full(n, 1.5, np.float32)), make(np.full(n, 1e-4, np.float32))
        return lambda: ROWS[row](a, b), wait, {}

    serve(about, setup)
