"""Worker: single layers by gnomon or by MXNet: `layer_module.py PACKAGE [SETTING...]`.

The settings named are switched off.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
from layers import ROWS
from protocol import Step, serve

PACKAGE, *OFF = sys.argv[1:]
mx = importlib.import_module(PACKAGE)
for setting in OFF:
    importlib.import_module(f"{PACKAGE}.config").set(setting, False)


def setup(row: str, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A layer bound by itself."""
    layer = ROWS[row]
    symbol = getattr(mx.sym, layer.operator)(mx.sym.Variable("data"), name="layer", **layer.how)
    types = {"data": layer.dtype}
    bound = symbol.simple_bind(mx.cpu(), data=layer.data, type_dict=types)
    rng = np.random.RandomState(3)
    for array in bound.arg_dict.values():
        array[:] = rng.standard_normal(array.shape)
    head = mx.nd.ones(bound.forward(is_train=train)[0].shape, dtype=layer.dtype)

    def step() -> None:
        bound.forward(is_train=True)
        bound.backward(head)

    return (step if train else lambda: bound.forward(is_train=False)), mx.nd.waitall, {}


if __name__ == "__main__":
    off = f" without {', '.join(OFF)}" if OFF else ""
    serve(f"{PACKAGE} {mx.__version__}{off}", setup)
