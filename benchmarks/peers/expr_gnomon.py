"""Worker: expressions by gnomon.shadow, one kernel each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import work
from protocol import Step, serve

import gnomon
from gnomon import shadow
from gnomon.shadow import fn

ETA, LAM = float(work.ETA), float(work.LAM)
ROOT = float(work.ROOT_HALF)


@shadow.op
def smooth(x):
    """A user's operator with a branch."""
    return 0.5 * x * x if abs(x) < 1.0 else abs(x) - 0.5


def softmax(x: Any) -> Any:
    """Rows, shifted by their greatest element."""
    e = fn.exp(x - shadow.broadcast_to(shadow.reduce(x, "max", 1, keepdims=True), x.shape))
    return e / shadow.broadcast_to(shadow.reduce(e, "sum", 1, keepdims=True), x.shape)


def activations(x: Any) -> Any:
    return 0.5 * x * (fn.erf(x * ROOT) + 1.0) + fn.sigmoid(x) + fn.tanh(x) + fn.exp(x)


FORMULAS = {
    "sgd": lambda g, w: -ETA * (g + LAM * w),
    "add": lambda x, y: x + y,
    "mixed": lambda b, c, d: b * fn.maximum(c, b) + d / (1.0 + fn.abs(b)) - c,
    "activations": activations,
    "tanh": fn.tanh,
    "exp": fn.exp,
    "smooth_l1": shadow.F(smooth),
    "transpose": lambda x: x.T,
    "argmax": lambda x: shadow.arg_reduce(x, "max", 0),
    "sum 0": lambda x: shadow.reduce(x, "sum", 0),
    "sum 1": lambda x: shadow.reduce(x, "sum", 1),
    "softmax": softmax,
}


def setup(row: str, n: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row: the formula is composed and assigned anew each time, as a user does."""
    a = work.arrays(row, n)
    if row == "argmax":
        a["out"] = np.zeros((), np.int64)
    tensors = {k: shadow.Tensor(v) for k, v in a.items()}
    out, formula = tensors[work.ROWS[row].place or "out"], FORMULAS[row]
    operands = [tensors[k] for k in work.ROWS[row].operands]

    def step() -> None:
        out.assign(formula(*operands))

    step()
    return step, lambda: None, {"probe": work.probe(out.numpy())}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(f"gnomon {gnomon.__version__}", setup)
