"""Worker: expressions by gnomon.shadow, one kernel each."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import work
from protocol import Step, serve

import gnomon
from gnomon import shadow
from gnomon.runtime.execution.program import Program
from gnomon.runtime.statements.prepare import Store, prepare
from gnomon.shadow import fn, tcast

ETA, LAM, ROOT = work.ETA, work.LAM, work.ROOT_HALF


@shadow.op
def smooth(x):
    """A user's operator with a branch."""
    return 0.5 * x * x if abs(x) < 1.0 else abs(x) - 0.5


def spread(x: Any, like: Any) -> Any:
    """Something of one row or column for every row or column."""
    return shadow.broadcast_to(x, like.shape)


def softmax(x: Any) -> Any:
    """Rows, shifted by their greatest element."""
    e = fn.exp(x - spread(shadow.reduce(x, "max", 1, keepdims=True), x))
    return e / spread(shadow.reduce(e, "sum", 1, keepdims=True), x)


def variance(x: Any) -> Any:
    """Of each row."""
    n = x.shape[1]
    away = x - spread(shadow.reduce(x, "sum", 1, keepdims=True) / n, x)
    return shadow.reduce(away * away, "sum", 1) / n


def gelu(x: Any) -> Any:
    return 0.5 * x * (fn.erf(x * ROOT) + 1.0)


def sgd(g: Any, w: Any) -> Any:
    return -ETA * (g + LAM * w)


FORMULAS = {
    "sgd": sgd,
    "new sgd": sgd,
    "add": lambda x, y: x + y,
    "mixed": lambda b, c, d: b * fn.maximum(c, b) + d / (1.0 + fn.abs(b)) - c,
    "smooth_l1": shadow.F(smooth),
    "plus": lambda x, y: x,
    "row": lambda x, r: x + spread(r, x),
    "column": lambda x, c: x * spread(c, x),
    "gelu": gelu,
    "gelu function": fn.gelu,
    "sigmoid": fn.sigmoid,
    "tanh": fn.tanh,
    "exp": fn.exp,
    "softplus": fn.softplus,
    "activations": lambda x: gelu(x) + fn.sigmoid(x) + fn.tanh(x) + fn.exp(x),
    "transpose": lambda x: x.T,
    "transposed": lambda x, y: x.T + y,
    "every other": lambda x: shadow.Tensor(x.numpy()[:, 0]) * 2.0 + 1.0,
    "cumsum": lambda x: shadow.cumsum(x, 1),
    "sum 0": lambda x: shadow.reduce(x, "sum", 0),
    "sum 1": lambda x: shadow.reduce(x, "sum", 1),
    "sum all": lambda x: shadow.reduce(x, "sum", 0, keepdims=True),
    "softmax": softmax,
    "softmax of 50": softmax,
    "truncate": lambda x: tcast("int32", x),
    "outer": lambda r, c: (
        shadow.broadcast_to(r, (c.shape[0], r.shape[0]))
        + shadow.broadcast_to(c, (c.shape[0], r.shape[0]))
    ),
    **dict.fromkeys(("sum of 3", "sum of 8", "sum of 30"), lambda x: shadow.reduce(x, "sum", 1)),
    **dict.fromkeys(("max of 3", "max of 8", "max of 30"), lambda x: shadow.reduce(x, "max", 1)),
    "argmax": lambda x: shadow.arg_reduce(x, "max", 0, keepdims=True),
    "argmax 1": lambda x: shadow.arg_reduce(x, "max", 1),
    "variance": variance,
}
CASTS = {"cast": lambda x, to: tcast(to, x), "bytes": lambda x, to: tcast(to, x) * work.BYTE}


def setup(row: str, n: int, dtype: str, repeats: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row: the formula is composed and assigned anew each time, as a user does.

    With `repeats`, the step runs the kernel so often, prepared, by one call.
    """
    a = work.arrays(row, n, dtype)
    if row in work.INDICES:
        a["out"] = np.zeros(a["out"].shape, np.int64)
    tensors = {k: shadow.Tensor(v) for k, v in a.items()}
    out = tensors[work.ROWS[row].place or "out"]
    saver = shadow.plusto if row == "plus" else shadow.saveto
    operands = [tensors[k] for k in work.ROWS[row].operands]

    def value() -> Any:
        return CASTS[row](*operands, dtype) if row in CASTS else FORMULAS[row](*operands)

    def step() -> None:
        out[:] = value()

    def added() -> None:
        operator.iadd(out, value())

    run = added if row == "plus" else step
    run()
    found = {"probe": work.probe(out.numpy())}
    if repeats:
        program = Program(prepare([Store(out, saver, value())]) * repeats)
        return program.run, lambda: None, found
    return run, lambda: None, found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(f"gnomon {gnomon.__version__}", setup)
