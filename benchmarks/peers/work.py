"""The rows of the expression benchmark: operands, what NumPy says the result is, and sizes.

A worker has for each row it can do a function from the operands to a step; the step puts its result
into the operand `out`, or gives it back. `out` is one of the operands where a row says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Arrays = dict[str, np.ndarray]
Shape = tuple[int, ...]
ETA, LAM, BYTE, ROOT_HALF = 0.01, 0.1, 1 / 255, math.sqrt(0.5)


def vector(n: int) -> Shape:
    return (n,)


def square(n: int) -> Shape:
    """A square of about n elements."""
    return (math.isqrt(n), math.isqrt(n))


def one_row(n: int) -> Shape:
    return square(n)[1:]


def one_column(n: int) -> Shape:
    return (math.isqrt(n), 1)


def rows_of_1000(n: int) -> Shape:
    return (n // 1000, 1000)


def rows_of_2(n: int) -> Shape:
    return (n, 2)


def rows_of(length: int) -> Callable[[int], Shape]:
    """Rows of so many elements, and about n in all."""
    return lambda n: (n // length, length)


def count_of(length: int) -> Callable[[int], Shape]:
    """One element for each such row."""
    return lambda n: (n // length,)


def one_each(n: int) -> Shape:
    return (n // 1000,)


def single(n: int) -> Shape:
    return (1,)


SIZES = (1_000, 10_000, 100_000, 500_000, 1_000_000, 10_000_000)


@dataclass(frozen=True)
class Row:
    """A row: the shape of each operand for n elements, and the result by NumPy.

    `types` are the operands that have a dtype of their own, `place` the one that is overwritten.
    """

    result: Callable[[Arrays], np.ndarray]
    operands: dict[str, Callable[[int], Shape]] = field(default_factory=lambda: {"x": vector})
    out: Callable[[int], Shape] = vector
    sizes: tuple[int, ...] = SIZES
    types: dict[str, str] = field(default_factory=dict)
    place: str = ""


def erf(x: np.ndarray) -> np.ndarray:
    """The error function to seven digits (Abramowitz and Stegun 7.1.26), for the check alone."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = 1.061405429
    for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = poly * t + c
    return np.sign(x) * (1 - poly * t * np.exp(-x * x))


def gelu(a: Arrays) -> np.ndarray:
    return 0.5 * a["x"] * (1 + erf(a["x"] * ROOT_HALF))


def sigmoid(a: Arrays) -> np.ndarray:
    return 1 / (1 + np.exp(-a["x"]))


def activations(a: Arrays) -> np.ndarray:
    """gelu, sigmoid, tanh and exp in one formula."""
    return gelu(a) + sigmoid(a) + np.tanh(a["x"]) + np.exp(a["x"])


def softplus(a: Arrays) -> np.ndarray:
    return np.maximum(a["x"], 0) + np.log1p(np.exp(-np.abs(a["x"])))


def smooth_l1(a: Arrays) -> np.ndarray:
    x = a["x"]
    return np.where(np.abs(x) < 1, 0.5 * x * x, np.abs(x) - 0.5)


def softmax(a: Arrays) -> np.ndarray:
    e = np.exp(a["x"] - a["x"].max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def sgd(a: Arrays) -> np.ndarray:
    return -ETA * (a["g"] + LAM * a["w"])


def mixed(a: Arrays) -> np.ndarray:
    return a["b"] * np.maximum(a["c"], a["b"]) + a["d"] / (1 + np.abs(a["b"])) - a["c"]


GW = {"g": vector, "w": vector}
BCD = {"b": vector, "c": vector, "d": vector}
X2, ROWS_X = {"x": square}, {"x": rows_of_1000}
LONG, SHORT = SIZES[2:], (100_000, 1_000_000)
ROWS = {
    "add": Row(lambda a: a["x"] + a["y"], {"x": vector, "y": vector}, sizes=(10,)),
    "sgd": Row(sgd, GW, sizes=(10, *SIZES, 50_000_000), place="w"),
    "new sgd": Row(sgd, GW),
    "mixed": Row(mixed, BCD, sizes=(*SIZES, 50_000_000)),
    "smooth_l1": Row(smooth_l1),
    "plus": Row(lambda a: a["y"] + a["x"], {"x": vector, "y": vector}, place="y"),
    "row": Row(lambda a: a["x"] + a["r"], {"x": square, "r": one_row}, square),
    "column": Row(lambda a: a["x"] * a["c"], {"x": square, "c": one_column}, square),
    "cast": Row(lambda a: a["x"].astype(a["out"].dtype), types={"x": "int32"}),
    "truncate": Row(lambda a: a["x"].astype("int32"), types={"out": "int32"}),
    "outer": Row(lambda a: a["r"] + a["c"], {"r": one_row, "c": one_column}, square, LONG),
    "bytes": Row(lambda a: a["x"] * a["out"].dtype.type(BYTE), types={"x": "uint8"}),
    "gelu": Row(gelu),
    "gelu function": Row(gelu),  # the one that is built in, right far below 0, too
    "sigmoid": Row(sigmoid),
    "tanh": Row(lambda a: np.tanh(a["x"])),
    "exp": Row(lambda a: np.exp(a["x"])),
    "softplus": Row(softplus),
    "activations": Row(activations),
    "transpose": Row(lambda a: a["x"].T.copy(), X2, square),
    "transposed": Row(lambda a: a["x"].T + a["y"], {"x": square, "y": square}, square),
    "every other": Row(lambda a: a["x"][:, 0] * 2 + 1, {"x": rows_of_2}),
    "cumsum": Row(lambda a: a["x"].cumsum(1), ROWS_X, rows_of_1000, LONG),
    "sum 0": Row(lambda a: a["x"].sum(0), X2, one_row, LONG),
    "sum 1": Row(lambda a: a["x"].sum(1), X2, one_row, LONG),
    "sum all": Row(lambda a: a["x"].sum(keepdims=True), out=single, sizes=LONG),
    **{
        f"{name} of {k}": Row(reduced, {"x": rows_of(k)}, count_of(k), SHORT)
        for name, reduced in (("sum", lambda a: a["x"].sum(1)), ("max", lambda a: a["x"].max(1)))
        for k in (3, 8, 30)
    },
    "softmax of 50": Row(softmax, {"x": rows_of(50)}, rows_of(50), SHORT),
    "softmax": Row(softmax, ROWS_X, rows_of_1000, LONG),
    "argmax": Row(lambda a: a["x"].argmax(keepdims=True), out=single, sizes=LONG),
    "argmax 1": Row(lambda a: a["x"].argmax(1), ROWS_X, one_each, LONG),
    "variance": Row(lambda a: a["x"].var(1), ROWS_X, one_each, LONG),
}
INDICES = ("argmax", "argmax 1")  # rows whose results are positions
PROBES = 1000  # elements of a result that are compared


def aligned(shape: Shape, dtype: str, turn: int) -> np.ndarray:
    """Zeros that begin at a cache line, each operand at another distance from a page's start."""
    count = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(count + 8192, np.uint8)
    start = -raw.ctypes.data % 4096 + 320 * turn
    return raw[start : start + count].view(dtype).reshape(shape)


def arrays(name: str, n: int, dtype: str = "float32") -> Arrays:
    """The operands of a row, and `out`."""
    row, rng = ROWS[name], np.random.default_rng(5)
    found: Arrays = {}
    for turn, (k, shape) in enumerate(row.operands.items()):
        found[k] = aligned(shape(n), row.types.get(k, dtype), turn)
        drawn = rng.standard_normal(found[k].shape, np.float32)
        found[k][...] = np.abs(drawn * 50) if k in row.types else drawn
    kind = row.types.get("out", dtype)
    found["out"] = found[row.place] if row.place else aligned(row.out(n), kind, 7)
    return found


def probe(result: np.ndarray) -> list[float]:
    """Some elements of a result, evenly spread."""
    flat = np.asarray(result).reshape(-1)
    return [float(v) for v in flat[:: max(1, len(flat) // PROBES)][:PROBES]]


def expected(name: str, n: int, dtype: str = "float32") -> list[float]:
    """What `probe` should give."""
    return probe(ROWS[name].result(arrays(name, n, dtype)))
