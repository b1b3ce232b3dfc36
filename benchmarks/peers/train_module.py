"""Worker: steps by the Module of gnomon or of MXNet: `train_module.py PACKAGE [SETTING...]`.

The settings named are switched off.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import nets
import numpy as np
import symbols
from protocol import Step, serve

PACKAGE, *OFF = sys.argv[1:]
mx = importlib.import_module(PACKAGE)
waitall = mx.nd.waitall
for setting in OFF:
    importlib.import_module(f"{PACKAGE}.config").set(setting, False)


def arrays(values: dict[str, np.ndarray]) -> dict[str, Any]:
    return {k: mx.nd.array(v) for k, v in values.items()}


def setup(net: str, size: int, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A bound module, with an optimizer to `train`; the loss of its last step of some."""
    if net == "sgemm":
        return product(size)
    pictures, labels = nets.batch(net, size)
    symbol = mx.sym.SoftmaxOutput(getattr(symbols, net)(mx, size), name="softmax")
    module = mx.mod.Module(symbol)
    module.bind([("data", pictures.shape)], [("softmax_label", labels.shape)], for_training=train)
    given = arrays(nets.packed(nets.parameters(net))), arrays(nets.states(net))
    module.init_params(arg_params=given[0], aux_params=given[1])
    rate = {"learning_rate": nets.LEARNING_RATE, "momentum": nets.MOMENTUM, "wd": 0.0}
    module.init_optimizer(optimizer="sgd", optimizer_params=rate)
    batch = mx.io.DataBatch([mx.nd.array(pictures)], [mx.nd.array(labels)])

    def step() -> None:
        module.forward_backward(batch)
        module.update()

    def predict() -> None:
        module.forward(batch, is_train=False)

    chosen = step if train else predict
    for _ in range(nets.PROOF):
        chosen()
    return chosen, waitall, {"loss": nets.loss(module.get_outputs()[0].asnumpy(), labels)}


def product(size: int) -> tuple[Step, Step, dict[str, Any]]:
    """The product of two square matrices, which says what the machine can do."""
    a, out = mx.nd.ones((size, size)), mx.nd.zeros((size, size))
    return lambda: mx.nd.dot(a, a, out=out), waitall, {"loss": 0.0}


if __name__ == "__main__":
    off = f" without {', '.join(OFF)}" if OFF else ""
    serve(f"{PACKAGE} {mx.__version__}{off}", setup)
