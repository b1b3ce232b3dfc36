"""Worker: expressions by the real MXNet's arrays, each operator for itself."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import work
from protocol import Step, serve

nd = mx.nd
ETA, LAM = float(work.ETA), float(work.LAM)


def sgd(g: Any, w: Any) -> Any:
    w[:] = -ETA * (g + LAM * w)
    return w


FORMULAS = {
    "sgd": sgd,
    "add": lambda x, y: x + y,
    "mixed": lambda b, c, d: b * nd.maximum(c, b) + d / (1 + b.abs()) - c,
    "activations": lambda x: (
        nd.LeakyReLU(x, act_type="gelu") + nd.sigmoid(x) + nd.tanh(x) + nd.exp(x)
    ),
    "tanh": nd.tanh,
    "exp": nd.exp,
    "smooth_l1": lambda x: nd.smooth_l1(x, scalar=1.0),
    "transpose": nd.transpose,
    "argmax": lambda x: nd.argmax(x, axis=0),
    "sum 0": lambda x: nd.sum(x, axis=0),
    "sum 1": lambda x: nd.sum(x, axis=1),
    "softmax": lambda x: nd.softmax(x, axis=1),
}


def setup(row: str, n: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = {k: nd.array(v) for k, v in work.arrays(row, n).items() if k != "out"}
    formula, operands = FORMULAS[row], list(a.values())

    def step() -> Any:
        return formula(*operands)

    return step, nd.waitall, {"probe": work.probe(step().asnumpy())}


if __name__ == "__main__":
    serve(f"MXNet {mx.__version__}", setup)
