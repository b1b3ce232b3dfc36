"""Worker: the extension rows by NumPy, into memory that is there already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ext_work as work
import numpy as np
from ext_work import Arrays
from protocol import Step, serve

RNG = np.random.default_rng(3)


def pool(a: Arrays, size: int) -> Step:
    x, out = a["x"], a["out"]
    rows, columns = out.shape[-2:]
    parts = [
        x[..., y : y + 2 * rows - 1 : 2, z : z + 2 * columns - 1 : 2]
        for y in range(size)
        for z in range(size)
    ]

    def step() -> None:
        np.copyto(out, parts[0])
        for part in parts[1:]:
            np.maximum(out, part, out=out)

    return step


def unpool(a: Arrays) -> Step:
    x, pooled, grad, out = a["x"], a["pooled"], a["grad"], a["out"]

    def step() -> None:
        for y in range(2):
            for z in range(2):
                np.multiply(x[..., y::2, z::2] == pooled, grad, out=out[..., y::2, z::2])

    return step


def columns(a: Arrays) -> Step:
    x, out = a["x"], a["out"]
    n, c, h, w = x.shape
    view = out.reshape(c, 3, 3, n, h, w)

    def step() -> None:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        np.copyto(view, work.windows(padded, 3, 1).transpose(1, 4, 5, 0, 2, 3))

    return step


def one_hot(a: Arrays) -> Step:
    index, out = a["index"], a["out"]
    rows = np.arange(len(index))

    def step() -> None:
        out.fill(0)
        out[rows, index] = 1

    return step


def added(a: Arrays) -> Step:
    def step() -> None:
        a["out"].fill(0)
        np.add.at(a["out"], a["index"], a["x"])

    return step


def pad(a: Arrays) -> Step:
    x, out = a["x"], a["out"]

    def step() -> None:
        out[:, :2] = out[:, -2:] = out[:, :, :2] = out[:, :, -2:] = 0
        out[:, 2:-2, 2:-2] = x

    return step


def softmax(a: Arrays) -> Step:
    x, out = a["x"], a["out"]

    def step() -> None:
        np.subtract(x, x.max(1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(1, keepdims=True), out=out)

    return step


STEPS: dict[str, Callable[[Arrays], Step]] = {
    "pool 2": lambda a: pool(a, 2),
    "pool 3": lambda a: pool(a, 3),
    "unpool": unpool,
    "patch2col": columns,
    "col2patch": lambda a: lambda: work.images(a),
    "take": lambda a: lambda: np.take(a["x"], a["index"], 0, out=a["out"], mode="clip"),
    "take_grad": added,
    "take_grad duplicates": added,
    "one_hot": one_hot,
    "transpose": lambda a: lambda: np.copyto(a["out"], a["x"].T),
    "concat 0": lambda a: lambda: np.concatenate([a["x"], a["y"]], 0, out=a["out"]),
    "concat 1": lambda a: lambda: np.concatenate([a["x"], a["y"]], 1, out=a["out"]),
    "pad": pad,
    "softmax": softmax,
    "sort": lambda a: lambda: work.sorted_values(a),
    "uniform": lambda a: lambda: RNG.random(dtype=np.float32, out=a["out"]),
    "gaussian": lambda a: lambda: RNG.standard_normal(dtype=np.float32, out=a["out"]),
    "gamma": lambda a: lambda: RNG.standard_gamma(work.ALPHA, dtype=np.float32, out=a["out"]),
    "poisson": lambda a: lambda: RNG.poisson(work.MEAN, work.DRAWN),
}


def setup(row: str) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = work.arrays(row)
    step = STEPS[row](a)
    result: Any = step()
    found = a["out"] if result is None else result
    return step, lambda: None, {"probe": work.probe(row, found)}


if __name__ == "__main__":
    serve(f"NumPy {np.__version__}", setup)
