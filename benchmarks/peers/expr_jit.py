"""Worker: expressions by Numba, or by numexpr: `expr_jit.py numba` or `expr_jit.py numexpr`."""

from __future__ import annotations

import importlib
import math
import os
import sys
from typing import Any

import numpy as np
import work
from protocol import Step, serve
from work import Arrays

NAME = sys.argv[1]
jit = importlib.import_module(NAME)
THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))

SHORT = 20_000

TEXTS = {
    "sgd": "-eta * (g + lam * w)",
    "add": "x + y",
    "mixed": "b * where(c > b, c, b) + d / (1 + abs(b)) - c",
    "tanh": "tanh(x)",
    "exp": "exp(x)",
    "smooth_l1": "where(abs(x) < 1, half * x * x, abs(x) - half)",
    "sum 0": "sum(x, axis=0)",
    "sum 1": "sum(x, axis=1)",
}
CONSTANTS = {"eta": work.ETA, "lam": work.LAM, "half": np.float32(0.5)}


def by_numexpr(row: str, a: Arrays) -> Step:
    """A compiled text, evaluated into `out`."""
    jit.set_num_threads(THREADS)
    names = {**CONSTANTS, **a}
    out = names.pop("out")
    return lambda: jit.evaluate(TEXTS[row], names, out=out, casting="unsafe")


def loops() -> dict[str, Any]:
    """The rows as loops, written as one writes them in C."""
    prange = jit.prange
    eta, lam, root = work.ETA, work.LAM, work.ROOT_HALF
    one, half = np.float32(1), np.float32(0.5)

    def sgd(out: Any, g: Any, w: Any) -> None:
        for i in prange(len(out)):
            out[i] = -eta * (g[i] + lam * w[i])

    def add(out: Any, x: Any, y: Any) -> None:
        for i in prange(len(out)):
            out[i] = x[i] + y[i]

    def mixed(out: Any, b: Any, c: Any, d: Any) -> None:
        for i in prange(len(out)):
            out[i] = b[i] * max(c[i], b[i]) + d[i] / (one + abs(b[i])) - c[i]

    def activations(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            v = x[i]
            gelu = half * v * (one + np.float32(math.erf(v * root)))
            out[i] = gelu + one / (one + math.exp(-v)) + math.tanh(v) + math.exp(v)

    def tanh(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = math.tanh(x[i])

    def exp(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = math.exp(x[i])

    def smooth_l1(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            v = x[i]
            out[i] = half * v * v if abs(v) < one else abs(v) - half

    return {f.__name__: f for f in (sgd, add, mixed, activations, tanh, exp, smooth_l1)}


def by_numba(row: str, a: Arrays) -> Step:
    """A compiled loop; a short one is no work for threads."""
    jit.set_num_threads(THREADS)
    function = jit.njit(parallel=a["out"].size > SHORT, fastmath=True)(loops()[row])
    operands = [a["out"], *(a[k] for k in work.ROWS[row].operands)]
    return lambda: function(*operands)


def setup(row: str, n: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = work.arrays(row, n)
    step = {"numba": by_numba, "numexpr": by_numexpr}[NAME](row, a)
    step()
    return step, lambda: None, {"probe": work.probe(a["out"])}


if __name__ == "__main__":
    serve(f"{NAME} {jit.__version__}", setup)
