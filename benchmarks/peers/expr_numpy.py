"""Worker: expressions by NumPy, `expr_numpy.py plain` or `expr_numpy.py out` (no temporaries)."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import work
from protocol import Step, serve
from work import ETA, LAM, Arrays


def sgd(a: Arrays) -> Step:
    g, w, out = a["g"], a["w"], a["out"]

    def step() -> None:
        np.multiply(w, LAM, out=out)
        np.add(out, g, out=out)
        np.multiply(out, -ETA, out=out)

    return step


def mixed(a: Arrays) -> Step:
    b, c, d, out = a["b"], a["c"], a["d"], a["out"]
    scratch = np.empty_like(out)

    def step() -> None:
        np.maximum(c, b, out=out)
        np.multiply(out, b, out=out)
        np.abs(b, out=scratch)
        np.add(scratch, 1, out=scratch)
        np.divide(d, scratch, out=scratch)
        np.add(out, scratch, out=out)
        np.subtract(out, c, out=out)

    return step


def softmax(a: Arrays) -> Step:
    x, out = a["x"], a["out"]

    def step() -> None:
        np.subtract(x, x.max(1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(1, keepdims=True), out=out)

    return step


def sigmoid(a: Arrays) -> Step:
    x, out = a["x"], a["out"]

    def step() -> None:
        np.negative(x, out=out)
        np.exp(out, out=out)
        np.add(out, 1, out=out)
        np.reciprocal(out, out=out)

    return step


def softplus(a: Arrays) -> Step:
    x, out = a["x"], a["out"]
    scratch = np.empty_like(out)

    def step() -> None:
        np.abs(x, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)
        np.log1p(out, out=out)
        np.maximum(x, 0, out=scratch)
        np.add(out, scratch, out=out)

    return step


OUT = {
    "sgd": sgd,
    "new sgd": sgd,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "mixed": mixed,
    "softmax": softmax,
    "add": lambda a: lambda: np.add(a["x"], a["y"], out=a["out"]),
    "tanh": lambda a: lambda: np.tanh(a["x"], out=a["out"]),
    "exp": lambda a: lambda: np.exp(a["x"], out=a["out"]),
    "transpose": lambda a: lambda: np.copyto(a["out"], a["x"].T),
    "plus": lambda a: lambda: np.add(a["y"], a["x"], out=a["out"]),
    "row": lambda a: lambda: np.add(a["x"], a["r"], out=a["out"]),
    "column": lambda a: lambda: np.multiply(a["x"], a["c"], out=a["out"]),
    "cast": lambda a: lambda: np.copyto(a["out"], a["x"], casting="unsafe"),
    "bytes": lambda a: lambda: np.multiply(a["x"], work.BYTE, out=a["out"], casting="unsafe"),
    "transposed": lambda a: lambda: np.add(a["x"].T, a["y"], out=a["out"]),
    "sum all": lambda a: lambda: np.sum(a["x"], keepdims=True, out=a["out"]),
    "argmax": lambda a: lambda: np.argmax(a["x"]),
    "argmax 1": lambda a: lambda: np.argmax(a["x"], 1),
    "variance": lambda a: lambda: np.var(a["x"], 1, out=a["out"]),
    "cumsum": lambda a: lambda: np.cumsum(a["x"], 1, out=a["out"]),
    "sum 0": lambda a: lambda: np.sum(a["x"], 0, out=a["out"]),
    "sum 1": lambda a: lambda: np.sum(a["x"], 1, out=a["out"]),
}


def plain(name: str, a: Arrays) -> Step:
    """The formula as one writes it, with a temporary array for each operator."""
    result, out = work.ROWS[name].result, a["out"]
    if not work.ROWS[name].place:
        return lambda: result(a)
    return lambda: out.__setitem__(slice(None), result(a))


def setup(row: str, n: int, dtype: str, repeats: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = work.arrays(row, n, dtype)
    step = plain(row, a) if sys.argv[1] == "plain" else OUT[row](a)
    result = step()
    return step, lambda: None, {"probe": work.probe(a["out"] if result is None else result)}


if __name__ == "__main__":
    serve(f"NumPy {np.__version__}", setup)
