"""Worker: expressions by Numba, or by numexpr: `expr_jit.py numba` or `expr_jit.py numexpr`."""

from __future__ import annotations

import importlib
import math
import os
import sys
from typing import Any

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
    "plus": "x + y",
    "row": "x + r",
    "column": "x * c",
    "cast": "x",
    "bytes": "x * byte",
    "sigmoid": "one / (one + exp(-x))",
    "softplus": "where(x > 0, x, 0 * x) + log1p(exp(-abs(x)))",
    "sum 0": "sum(x, axis=0)",
    "sum 1": "sum(x, axis=1)",
    "sum all": "sum(x)",
}
TEXTS["new sgd"] = TEXTS["sgd"]
CONSTANTS = {"eta": work.ETA, "lam": work.LAM, "half": 0.5, "one": 1, "byte": work.BYTE}


def by_numexpr(row: str, a: Arrays) -> Step:
    """A compiled text, evaluated into `out`."""
    jit.set_num_threads(THREADS)
    out = a["out"]
    names = {k: out.dtype.type(v) for k, v in CONSTANTS.items()} | a
    del names["out"]
    return lambda: jit.evaluate(TEXTS[row], names, out=out, casting="unsafe")


def loops(real: Any) -> dict[str, Any]:
    """The rows as loops over elements of a type, written as one writes them in C."""
    prange = jit.prange
    eta, lam, one, half, byte = map(real, (work.ETA, work.LAM, 1, 0.5, work.BYTE))

    def sgd(out: Any, g: Any, w: Any) -> None:
        for i in prange(len(out)):
            out[i] = -eta * (g[i] + lam * w[i])

    def add(out: Any, x: Any, y: Any) -> None:
        for i in prange(len(out)):
            out[i] = x[i] + y[i]

    def mixed(out: Any, b: Any, c: Any, d: Any) -> None:
        for i in prange(len(out)):
            out[i] = b[i] * max(c[i], b[i]) + d[i] / (one + abs(b[i])) - c[i]

    def smooth_l1(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            v = x[i]
            out[i] = half * v * v if abs(v) < one else abs(v) - half

    def cast(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = x[i]

    def in_bytes(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = real(x[i]) * byte

    found = {f.__name__: f for f in (sgd, add, mixed, smooth_l1, cast)}
    return found | {"plus": add, "new sgd": sgd, "bytes": in_bytes, "truncate": cast}


def loops_of_functions(real: Any) -> dict[str, Any]:
    """The rows with transcendental functions."""
    prange = jit.prange
    root, one, half, zero = map(real, (work.ROOT_HALF, 1, 0.5, 0))

    def activations(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            v = x[i]
            gelu = half * v * (one + real(math.erf(v * root)))
            out[i] = gelu + one / (one + math.exp(-v)) + math.tanh(v) + math.exp(v)

    def tanh(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = math.tanh(x[i])

    def exp(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = math.exp(x[i])

    def gelu(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = half * x[i] * (one + real(math.erf(x[i] * root)))

    def sigmoid(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = one / (one + math.exp(-x[i]))

    def softplus(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = max(x[i], zero) + math.log1p(math.exp(-abs(x[i])))

    return {f.__name__: f for f in (activations, tanh, exp, gelu, sigmoid, softplus)}


def loops_of_tables() -> dict[str, Any]:
    """The rows with two axes."""
    prange = jit.prange

    def row(out: Any, x: Any, r: Any) -> None:
        for i in prange(len(out)):
            for j in range(len(r)):
                out[i, j] = x[i, j] + r[j]

    def column(out: Any, x: Any, c: Any) -> None:
        for i in prange(len(out)):
            for j in range(x.shape[1]):
                out[i, j] = x[i, j] * c[i, 0]

    def transpose(out: Any, x: Any) -> None:
        for j in prange(len(out)):
            for i in range(len(x)):
                out[j, i] = x[i, j]

    def every_other(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            out[i] = x[i, 0] * 2 + 1

    def cumsum(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            total = x[i, 0] * 0
            for j in range(x.shape[1]):
                total += x[i, j]
                out[i, j] = total

    def outer(out: Any, r: Any, c: Any) -> None:
        for i in prange(len(out)):
            for j in range(len(r)):
                out[i, j] = r[j] + c[i, 0]

    def sums(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            total = x[i, 0]
            for j in range(1, x.shape[1]):
                total += x[i, j]
            out[i] = total

    def largest(out: Any, x: Any) -> None:
        for i in prange(len(out)):
            found = x[i, 0]
            for j in range(1, x.shape[1]):
                found = max(found, x[i, j])
            out[i] = found

    short = {
        f"{name} of {k}": f for k in (3, 8, 30) for name, f in (("sum", sums), ("max", largest))
    }
    plain = {f.__name__: f for f in (row, column, transpose, outer, cumsum)}
    return {**plain, "every other": every_other, **short}


def by_numba(row: str, a: Arrays) -> Step:
    """A compiled loop; a short one is no work for threads."""
    jit.set_num_threads(THREADS)
    real = a["out"].dtype.type
    loop = (loops(real) | loops_of_functions(real) | loops_of_tables())[row]
    function = jit.njit(parallel=a["out"].size > SHORT, fastmath=True)(loop)
    operands = [a["out"], *(a[k] for k in work.ROWS[row].operands)]
    return lambda: function(*operands)


def setup(row: str, n: int, dtype: str, repeats: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = work.arrays(row, n, dtype)
    step = {"numba": by_numba, "numexpr": by_numexpr}[NAME](row, a)
    step()
    return step, lambda: None, {"probe": work.probe(a["out"])}


if __name__ == "__main__":
    serve(f"{NAME} {jit.__version__}", setup)
