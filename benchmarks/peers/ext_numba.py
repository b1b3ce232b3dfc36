"""Worker: the extension rows by Numba, as loops that one writes."""

from __future__ import annotations

import os
from typing import Any

import ext_work as work
import numba
import numpy as np
from ext_work import Arrays
from numba import prange
from protocol import Step, serve

THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
ALPHA, MEAN = work.ALPHA, work.MEAN


@numba.njit(inline="always")
def highest(x: Any, p: int, y: int, z: int, size: int) -> Any:
    best = x[p, y, z]
    for j in range(size):
        for k in range(size):
            best = max(best, x[p, y + j, z + k])
    return best


def pool(out: Any, x: Any, size: int) -> None:
    for p in prange(out.shape[0]):
        for y in range(out.shape[1]):
            for z in range(out.shape[2]):
                out[p, y, z] = highest(x, p, 2 * y, 2 * z, size)


def unpool(out: Any, x: Any, pooled: Any, grad: Any) -> None:
    for p in prange(out.shape[0]):
        for y in range(out.shape[1]):
            for z in range(out.shape[2]):
                hit = x[p, y, z] == pooled[p, y // 2, z // 2]
                out[p, y, z] = grad[p, y // 2, z // 2] if hit else np.float32(0)


def patch2col(out: Any, x: Any) -> None:
    n, c, h, w = x.shape
    for part in prange(c * 9 * n):
        row, image = part // n, part % n
        j, k = row // 3 % 3 - 1, row % 3 - 1
        for y in range(h):
            for z in range(w):
                inside = 0 <= y + j < h and 0 <= z + k < w
                value = x[image, row // 9, y + j, z + k] if inside else np.float32(0)
                out[row, (image * h + y) * w + z] = value


@numba.njit(inline="always")
def summed(x: Any, c: int, start: int, place: tuple[int, int], size: tuple[int, int]) -> Any:
    total = np.float32(0)
    for offset in range(9):
        y, z = place[0] + 1 - offset // 3, place[1] + 1 - offset % 3
        if 0 <= y < size[0] and 0 <= z < size[1]:
            total += x[c * 9 + offset, start + y * size[1] + z]
    return total


def col2patch(out: Any, x: Any) -> None:
    n, channels, h, w = out.shape
    for part in prange(n * channels):
        image, c = part // channels, part % channels
        for y in range(h):
            for z in range(w):
                out[image, c, y, z] = summed(x, c, image * h * w, (y, z), (h, w))


def take(out: Any, x: Any, index: Any) -> None:
    for i in prange(len(index)):
        out[i] = x[index[i]]


def take_grad(out: Any, x: Any, index: Any) -> None:
    out[:] = 0
    for i in range(len(index)):
        out[index[i]] += x[i]


def one_hot(out: Any, index: Any) -> None:
    for i in prange(len(index)):
        out[i] = 0
        out[i, index[i]] = 1


@numba.njit(inline="always")
def square(out: Any, x: Any, y0: int, z0: int) -> None:
    for y in range(y0, min(len(x), y0 + 32)):
        for z in range(z0, min(len(x), z0 + 32)):
            out[y, z] = x[z, y]


def transpose(out: Any, x: Any) -> None:
    n = len(x)
    for block in prange((n + 31) // 32):
        for start in range(0, n, 32):
            square(out, x, 32 * block, start)


def concat0(out: Any, x: Any, y: Any) -> None:
    for i in prange(len(x)):
        out[i] = x[i]
        out[len(x) + i] = y[i]


def concat1(out: Any, x: Any, y: Any) -> None:
    for i in prange(len(x)):
        out[i, : x.shape[1]] = x[i]
        out[i, x.shape[1] :] = y[i]


def pad(out: Any, x: Any) -> None:
    for i in prange(len(out)):
        out[i, :2] = 0
        out[i, -2:] = 0
        for y in range(x.shape[1]):
            out[i, y + 2, :2] = 0
            out[i, y + 2, 2:-2] = x[i, y]
            out[i, y + 2, -2:] = 0


def softmax(out: Any, x: Any) -> None:
    for i in prange(len(x)):
        top, total = x[i].max(), np.float32(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total


def sort(out: Any, x: Any, y: Any) -> None:
    out[:] = y[np.argsort(x, kind="mergesort")]


def uniform(out: Any) -> None:
    for i in prange(len(out)):
        out[i] = np.random.random()


def gaussian(out: Any) -> None:
    for i in prange(len(out)):
        out[i] = np.random.standard_normal()


def gamma(out: Any) -> None:
    for i in prange(len(out)):
        out[i] = np.random.standard_gamma(ALPHA)


def poisson(out: Any) -> None:
    for i in prange(len(out)):
        out[i] = np.random.poisson(MEAN)


FUNCTIONS = {f.__name__: f for f in (unpool, patch2col, col2patch, take, one_hot, transpose)}
FUNCTIONS |= {f.__name__: f for f in (pad, softmax, sort, uniform, gaussian, gamma, poisson)}
FUNCTIONS |= {"pool 2": pool, "pool 3": pool, "concat 0": concat0, "concat 1": concat1}
FUNCTIONS |= {"take_grad": take_grad, "take_grad duplicates": take_grad}


def setup(row: str) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    numba.set_num_threads(THREADS)
    a: Arrays = work.arrays(row)
    one_thread = row == "sort" or row.startswith("take_grad")
    function = numba.njit(parallel=not one_thread, fastmath=True)(FUNCTIONS[row])
    names = [*work.ROWS[row].operands, *(["index"] if "index" in a else [])]
    operands: list[Any] = [a["out"], *(a[k] for k in names)]
    if "pool" in row:  # images and channels are alike
        operands = [x.reshape(-1, *x.shape[-2:]) for x in operands]
    if row.startswith("pool"):
        operands.append(int(row[-1]))
    function(*operands)
    return lambda: function(*operands), lambda: None, {"probe": work.probe(row, a["out"])}


if __name__ == "__main__":
    serve(f"Numba {numba.__version__}", setup)
