"""The rows of the extension benchmark: operands, what NumPy says the result is, and the bytes.

A worker has for each row it can do a function from the operands to a step, as in `work.py`. Rows of
random numbers agree where the mean and the deviation of what was drawn do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Arrays = dict[str, np.ndarray]
PROBES = 1000
DRAWN = 1_000_000
ALPHA, MEAN = 2.5, 50.0  # of the gamma and the Poisson distribution


@dataclass(frozen=True)
class Row:
    """A row: shapes of the float operands, shape of `out`, the result by NumPy.

    `index` is (how many, below what) of an int64 operand `index`; `moments` are mean and deviation
    of a distribution to draw from; `reads` tells how many bytes a step must read, where that is not
    the size of its operands.
    """

    operands: dict[str, tuple[int, ...]]
    out: tuple[int, ...]
    result: Callable[[Arrays], np.ndarray] | None = None
    index: tuple[int, int] | None = None
    moments: tuple[float, float] | None = None
    reads: int | None = None

    @property
    def bytes(self) -> int:
        """What a step must move between memory and registers at the least."""
        read = sum(4 * int(np.prod(shape)) for shape in self.operands.values())
        read = read if self.reads is None else self.reads
        return read + 4 * int(np.prod(self.out)) + (8 * self.index[0] if self.index else 0)


def windows(x: np.ndarray, size: int, stride: int) -> np.ndarray:
    """The windows of the last two axes: (..., places, places, size, size)."""
    seen = np.lib.stride_tricks.sliding_window_view(x, (size, size), (-2, -1))
    return seen[..., ::stride, ::stride, :, :]


def unpool(a: Arrays) -> np.ndarray:
    """The gradient of the maximum of squares of two, to every tie."""
    wide = [np.repeat(np.repeat(a[k], 2, -2), 2, -1) for k in ("pooled", "grad")]
    return np.where(a["x"] == wide[0], wide[1], np.float32(0))


def columns(a: Arrays) -> np.ndarray:
    """Windows of three by three, the images' border padded by one, as columns."""
    seen = windows(np.pad(a["x"], ((0, 0), (0, 0), (1, 1), (1, 1))), 3, 1)
    return seen.transpose(1, 4, 5, 0, 2, 3).reshape(a["out"].shape)


def images(a: Arrays) -> np.ndarray:
    """The adjoint of `columns`."""
    n, c, h, w = a["out"].shape
    parts = a["x"].reshape(c, 3, 3, n, h, w)
    out = np.zeros((n, c, h + 2, w + 2), np.float32)
    for y in range(3):
        for x in range(3):
            out[:, :, y : y + h, x : x + w] += parts[:, y, x].transpose(1, 0, 2, 3)
    return out[:, :, 1:-1, 1:-1]


def rows_added(a: Arrays) -> np.ndarray:
    out = np.zeros(a["out"].shape, np.float32)
    np.add.at(out, a["index"], a["x"])
    return out


def softmax(a: Arrays) -> np.ndarray:
    e = np.exp(a["x"] - a["x"].max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def sorted_values(a: Arrays) -> np.ndarray:
    return a["y"][np.argsort(a["x"], kind="stable")]


IMAGES = (32, 64, 56, 56)
PATCHES = (8, 16, 56, 56)
TABLE, TAKEN = (10_000, 200), (700, 200)
SQUARE = (1000, 1000)
ROWS = {
    "pool 2": Row({"x": IMAGES}, (32, 64, 28, 28), lambda a: windows(a["x"], 2, 2).max((-2, -1))),
    "pool 3": Row({"x": IMAGES}, (32, 64, 27, 27), lambda a: windows(a["x"], 3, 2).max((-2, -1))),
    "unpool": Row(
        {"x": IMAGES, "pooled": (32, 64, 28, 28), "grad": (32, 64, 28, 28)}, IMAGES, unpool
    ),
    "patch2col": Row({"x": PATCHES}, (16 * 9, 8 * 56 * 56), columns),
    "col2patch": Row({"x": (16 * 9, 8 * 56 * 56)}, PATCHES, images),
    "take": Row(
        {"x": TABLE}, TAKEN, lambda a: a["x"][a["index"]], (700, 10_000), reads=700 * 200 * 4
    ),
    "take_grad": Row({"x": TAKEN}, TABLE, rows_added, (700, 10_000)),
    "take_grad duplicates": Row({"x": TAKEN}, TABLE, rows_added, (700, 40)),
    "one_hot": Row(
        {}, (10_000, 1000), lambda a: np.eye(1000, dtype="f4")[a["index"]], (10_000, 1000)
    ),
    "transpose": Row({"x": (3162, 3162)}, (3162, 3162), lambda a: a["x"].T),
    "concat 0": Row(
        {"x": SQUARE, "y": SQUARE}, (2000, 1000), lambda a: np.concatenate([a["x"], a["y"]])
    ),
    "concat 1": Row(
        {"x": SQUARE, "y": SQUARE}, (1000, 2000), lambda a: np.concatenate([a["x"], a["y"]], 1)
    ),
    "pad": Row(
        {"x": (16, 500, 500)},
        (16, 504, 504),
        lambda a: np.pad(a["x"], ((0, 0), (2, 2), (2, 2))),
    ),
    "softmax": Row({"x": (10_000, 1000)}, (10_000, 1000), softmax),
    "sort": Row({"x": (1_000_000,), "y": (1_000_000,)}, (1_000_000,), sorted_values),
    "uniform": Row({}, (DRAWN,), moments=(0.5, 12**-0.5)),
    "gaussian": Row({}, (DRAWN,), moments=(0.0, 1.0)),
    "gamma": Row({}, (DRAWN,), moments=(ALPHA, ALPHA**0.5)),
    "poisson": Row({}, (DRAWN,), moments=(MEAN, MEAN**0.5)),
}


def arrays(name: str) -> Arrays:
    """The operands of a row, and `out`."""
    row, rng = ROWS[name], np.random.default_rng(5)
    found = {k: rng.standard_normal(shape, np.float32) for k, shape in row.operands.items()}
    if name == "unpool":
        found["pooled"] = windows(found["x"], 2, 2).max((-2, -1))
    if row.index is not None:
        found["index"] = rng.integers(0, row.index[1], row.index[0])
    found["out"] = np.zeros(row.out, np.float32)
    return found


def probe(name: str, result: np.ndarray) -> list[float]:
    """Some elements of a result, evenly spread; of random numbers their moments."""
    flat = np.asarray(result).reshape(-1)
    if ROWS[name].moments is not None:
        return [float(flat.mean(dtype="f8")), float(flat.std(dtype="f8"))]
    return [float(v) for v in flat[:: max(1, len(flat) // PROBES)][:PROBES]]


def expected(name: str) -> list[float]:
    """What `probe` should give."""
    row = ROWS[name]
    return list(row.moments) if row.result is None else probe(name, row.result(arrays(name)))


def agrees(name: str, found: Sequence[float], right: Sequence[float]) -> bool:
    """Whether a probe is the right one."""
    slack = 5e-3 * (1 + abs(right[0])) if ROWS[name].moments is not None else 2e-4
    return np.shape(found) == np.shape(right) and np.allclose(found, right, 2e-3, slack)
