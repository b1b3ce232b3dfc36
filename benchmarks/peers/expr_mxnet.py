"""Worker: expressions by the real MXNet's arrays, each operator for itself."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import work
from protocol import Step, serve

nd = mx.nd
ETA, LAM = work.ETA, work.LAM


def sgd(g: Any, w: Any) -> Any:
    w[:] = -ETA * (g + LAM * w)
    return w


def plus(x: Any, y: Any) -> Any:
    y += x
    return y


FORMULAS = {
    "sgd": sgd,
    "new sgd": lambda g, w: -ETA * (g + LAM * w),
    "plus": plus,
    "row": lambda x, r: nd.broadcast_add(x, r.expand_dims(0)),
    "column": nd.broadcast_mul,
    "gelu": lambda x: nd.LeakyReLU(x, act_type="gelu"),
    "sigmoid": nd.sigmoid,
    "softplus": lambda x: nd.Activation(x, act_type="softrelu"),
    "transposed": lambda x, y: x.T + y,
    "sum all": lambda x: nd.sum(x, keepdims=True),
    "argmax 1": lambda x: nd.argmax(x, axis=1),
    "variance": lambda x: nd.square(nd.broadcast_sub(x, x.mean(1, keepdims=True))).mean(1),
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


CASTS = {"cast": lambda x, to: x.astype(to), "bytes": lambda x, to: x.astype(to) * work.BYTE}


def setup(row: str, n: int, dtype: str, repeats: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = work.arrays(row, n, dtype)
    operands = [nd.array(v, dtype=v.dtype) for k, v in a.items() if k != "out"]
    formula = FORMULAS[row] if row in FORMULAS else CASTS[row]
    if row in CASTS:
        operands.append(dtype)

    def step() -> Any:
        return formula(*operands)

    return step, nd.waitall, {"probe": work.probe(step().asnumpy())}


if __name__ == "__main__":
    serve(f"MXNet {mx.__version__}", setup)
