"""Worker: single operators by gnomon or by MXNet: `operators_module.py PACKAGE`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from operators import ARRAYS, ROWS, arrays
from protocol import Step, serve

mx = importlib.import_module(sys.argv[1])


def setup(row: str, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """The operator's function, and with `train` its gradients."""
    named: dict[str, Any] = {"nd": mx.nd}
    marked = []
    for name, values in arrays(row).items():
        dtype = "uint8" if name == "photo" else "float32"
        named[name] = mx.nd.array(values, dtype=dtype)
        if train and name in ARRAYS:
            named[name].attach_grad()
            marked.append(named[name])
    code = compile(ROWS[row][0], row, "eval")

    def forward() -> None:  # waits: a pending result that is dropped is never computed
        found = eval(code, named)
        for each in found if isinstance(found, (list, tuple)) else (found,):
            each.wait_to_read()

    shown = eval(code, named)
    heads = [mx.nd.ones_like(x) for x in (shown if isinstance(shown, (list, tuple)) else [shown])]

    def both() -> None:
        with mx.autograd.record():
            result = eval(code, named)
        results = result if isinstance(result, (list, tuple)) else [result]
        mx.autograd.backward(results, heads)
        for each in marked:
            each.grad.wait_to_read()

    forward()
    mx.nd.waitall()
    return (both if train else forward), mx.nd.waitall, {}


if __name__ == "__main__":
    serve(f"{sys.argv[1]} {mx.__version__}", setup)
