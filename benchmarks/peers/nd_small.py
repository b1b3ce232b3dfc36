"""Small statements on arrays, as MXNet and gnomon spell them alike."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

Statement = Callable[[], Any]

KEPT = 16


class Operands:
    """What the statements are about: matrices of `rows` times `columns`, and what goes with them.

    `a`, `b` and `c` are such matrices, `w` is one that stands upright, `row` a vector that fits
    under them, `bias` one that fits beside, and `index` names rows.
    """

    def __init__(self, nd: Any, rows: int, columns: int) -> None:
        self.nd = nd
        self.rows, self.columns = rows, columns
        self.numbers = np.linspace(0.5, 1.5, rows * columns, dtype=np.float32)
        self.a, self.b, self.c = (nd.array(self.numbers.reshape(rows, columns)) for _ in range(3))
        self.w = nd.array(self.numbers.reshape(columns, rows))
        self.row, self.bias = nd.array(self.numbers[:columns]), nd.array(self.numbers[:rows])
        self.index = nd.array(np.arange(rows))


STATEMENTS: dict[str, Callable[[Operands], Any]] = {
    "a + b": lambda x: x.a + x.b,
    "a * 2": lambda x: x.a * 2,
    "1 - a": lambda x: 1 - x.a,
    "-a": lambda x: -x.a,
    "a > b": lambda x: x.a > x.b,
    "a + row": lambda x: x.a + x.row,
    "broadcast_add": lambda x: x.nd.broadcast_add(x.a, x.row),
    "maximum": lambda x: x.nd.maximum(x.a, x.b),
    "where": lambda x: x.nd.where(x.a, x.b, x.c),
    "sqrt": lambda x: x.nd.sqrt(x.a),
    "a.exp()": lambda x: x.a.exp(),
    "relu": lambda x: x.nd.relu(x.a),
    "Activation": lambda x: x.nd.Activation(x.a, act_type="relu"),
    "clip": lambda x: x.nd.clip(x.a, 0, 1),
    "astype": lambda x: x.a.astype("float64"),
    "copy": lambda x: x.a.copy(),
    "a.sum()": lambda x: x.a.sum(),
    "sum axis=1": lambda x: x.nd.sum(x.a, axis=1),
    "a.mean()": lambda x: x.a.mean(),
    "a.max(axis=0)": lambda x: x.a.max(axis=0),
    "argmax": lambda x: x.nd.argmax(x.a, axis=1),
    "norm": lambda x: x.nd.norm(x.a),
    "sum of a * b": lambda x: (x.a * x.b).sum(),
    "softmax": lambda x: x.nd.softmax(x.a),
    "log_softmax": lambda x: x.nd.log_softmax(x.a),
    "dot": lambda x: x.nd.dot(x.a, x.w),
    "dot transposed": lambda x: x.nd.dot(x.a, x.b, transpose_b=True),
    "FullyConnected": lambda x: x.nd.FullyConnected(x.a, x.b, x.bias, num_hidden=x.rows),
    "concat": lambda x: x.nd.concat(x.a, x.b, dim=1),
    "stack": lambda x: x.nd.stack(x.a, x.b),
    "split": lambda x: x.nd.split(x.a, num_outputs=2, axis=0)[0],
    "a.T": lambda x: x.a.T,
    "a.T + w": lambda x: x.a.T + x.w,
    "reshape": lambda x: x.a.reshape((x.columns, x.rows)),
    "reshape + w": lambda x: x.a.reshape((x.columns, x.rows)) + x.w,
    "a[1]": lambda x: x.a[1],
    "a[0:1]": lambda x: x.a[0:1],
    "a[1] + row": lambda x: x.a[1] + x.row,
    "take": lambda x: x.nd.take(x.a, x.index),
    "one_hot": lambda x: x.nd.one_hot(x.index, 8),
    "a[:] = b": lambda x: x.c.__setitem__(slice(None), x.b),
    "a[:] = 0": lambda x: x.c.__setitem__(slice(None), 0),
    "a[1] = 2": lambda x: x.c.__setitem__(1, 2),
    "a += b": lambda x: x.c.__iadd__(x.b),
    "sgd_update": lambda x: x.nd.sgd_update(x.c, x.b, lr=1e-4, out=x.c),
    "zeros": lambda x: x.nd.zeros((x.rows, x.columns)),
    "asnumpy": lambda x: x.a.asnumpy(),
    "asscalar": lambda x: x.row[0].asscalar(),
}


def statement(nd: Any, name: str, n: int, waited: bool) -> Statement:
    """One of them on `n` elements, with the wait for its result or without.

    Without, the last results are kept: what nobody holds need not be computed.
    """
    rows = {10: 2}.get(n, int(n**0.5))
    operands = Operands(nd, rows, n // rows)
    call = STATEMENTS[name]
    results: deque[Any] = deque(maxlen=KEPT)

    def wait() -> None:
        made = call(operands)
        getattr(made, "wait_to_read", operands.c.wait_to_read)()

    return wait if waited else lambda: results.append(call(operands))
