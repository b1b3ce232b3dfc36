"""The rows of the expression benchmark: operands, what NumPy says the result is, and sizes.

A worker has for each row it can do a function from the operands to a step; the step puts its result
into the operand `out`, or gives it back. `out` is one of the operands where a row says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Arrays = dict[str, np.ndarray]
ETA, LAM = np.float32(0.01), np.float32(0.1)
ROOT_HALF = np.float32(math.sqrt(0.5))


@dataclass(frozen=True)
class Row:
    """A row: shape of the operands for n elements, their names, the result by NumPy."""

    operands: tuple[str, ...]
    result: Callable[[Arrays], np.ndarray]
    sizes: tuple[int, ...]
    shape: Callable[[int], tuple[int, ...]] = lambda n: (n,)
    out: Callable[[int], tuple[int, ...]] | None = None
    place: str = ""  # the operand that the result overwrites


def square(n: int) -> tuple[int, int]:
    """A square of about n elements."""
    return (math.isqrt(n), math.isqrt(n))


def rows_of_1000(n: int) -> tuple[int, int]:
    return (n // 1000, 1000)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function to seven digits (Abramowitz and Stegun 7.1.26), for the check alone."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = 1.061405429
    for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = poly * t + c
    return np.sign(x) * (1 - poly * t * np.exp(-x * x))


def activations(a: Arrays) -> np.ndarray:
    """gelu, sigmoid, tanh and exp in one formula."""
    x = a["x"].astype("f8")
    gelu = 0.5 * x * (1 + erf(x * ROOT_HALF))
    return gelu + 1 / (1 + np.exp(-x)) + np.tanh(x) + np.exp(x)


def smooth_l1(a: Arrays) -> np.ndarray:
    x = a["x"]
    return np.where(np.abs(x) < 1, 0.5 * x * x, np.abs(x) - 0.5)


def softmax(a: Arrays) -> np.ndarray:
    e = np.exp(a["x"] - a["x"].max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def mixed(a: Arrays) -> np.ndarray:
    return a["b"] * np.maximum(a["c"], a["b"]) + a["d"] / (1 + np.abs(a["b"])) - a["c"]


MILLIONS = (10_000_000,)
ROWS = {
    "sgd": Row(
        ("g", "w"),
        lambda a: -ETA * (a["g"] + LAM * a["w"]),
        (10, 100_000, 10_000_000, 50_000_000),
        place="w",
    ),
    "add": Row(("x", "y"), lambda a: a["x"] + a["y"], (10,)),
    "mixed": Row(("b", "c", "d"), mixed, (10_000_000, 50_000_000)),
    "activations": Row(("x",), activations, MILLIONS),
    "tanh": Row(("x",), lambda a: np.tanh(a["x"]), MILLIONS),
    "exp": Row(("x",), lambda a: np.exp(a["x"]), MILLIONS),
    "smooth_l1": Row(("x",), smooth_l1, MILLIONS),
    "transpose": Row(("x",), lambda a: a["x"].T.copy(), MILLIONS, square, square),
    "argmax": Row(("x",), lambda a: a["x"].argmax(), MILLIONS, out=lambda n: (1,)),
    "sum 0": Row(("x",), lambda a: a["x"].sum(0), MILLIONS, square, lambda n: square(n)[1:]),
    "sum 1": Row(("x",), lambda a: a["x"].sum(1), MILLIONS, square, lambda n: square(n)[:1]),
    "softmax": Row(("x",), softmax, MILLIONS, rows_of_1000, rows_of_1000),
}
PROBES = 1000  # elements of a result that are compared


def arrays(name: str, n: int) -> Arrays:
    """The operands of a row, and `out`."""
    row, rng = ROWS[name], np.random.default_rng(5)
    found = {k: rng.standard_normal(row.shape(n), np.float32) for k in row.operands}
    found["out"] = (
        found[row.place] if row.place else np.zeros((row.out or row.shape)(n), np.float32)
    )
    return found


def probe(result: np.ndarray) -> list[float]:
    """Some elements of a result, evenly spread."""
    flat = np.asarray(result).reshape(-1)
    return [float(v) for v in flat[:: max(1, len(flat) // PROBES)][:PROBES]]


def expected(name: str, n: int) -> list[float]:
    """What `probe` should give."""
    return probe(ROWS[name].result(arrays(name, n)))
