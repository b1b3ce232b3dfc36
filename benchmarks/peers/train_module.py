"""Worker: steps by the Module of gnomon or of MXNet: `train_module.py PACKAGE [SETTING...]`.

The settings named are switched off.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import nets
import numpy as np
from protocol import Step, serve

PACKAGE, *OFF = sys.argv[1:]
mx = importlib.import_module(PACKAGE)
waitall = mx.nd.waitall
for setting in OFF:
    importlib.import_module(f"{PACKAGE}.config").set(setting, False)


def mlp() -> Any:
    x = mx.sym.Variable("data")
    for i, width in enumerate((128, 64), 1):
        x = mx.sym.FullyConnected(x, name=f"fc{i}", num_hidden=width)
        x = mx.sym.Activation(x, act_type="relu")
    return mx.sym.FullyConnected(x, name="fc3", num_hidden=10)


def lenet() -> Any:
    x = mx.sym.Variable("data")
    for i, width in enumerate((20, 50), 1):
        x = mx.sym.Convolution(x, name=f"conv{i}", kernel=(5, 5), num_filter=width)
        x = mx.sym.Activation(x, act_type="tanh")
        x = mx.sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), name="fc1", num_hidden=500)
    x = mx.sym.Activation(x, act_type="tanh")
    return mx.sym.FullyConnected(x, name="fc2", num_hidden=10)


def normalized(x: Any, name: str, filters: int, kernel: int, stride: int = 1) -> Any:
    sizes = {"kernel": (kernel, kernel), "stride": (stride, stride), "pad": (kernel // 2,) * 2}
    x = mx.sym.Convolution(x, name=f"{name}_conv", num_filter=filters, no_bias=True, **sizes)
    return mx.sym.BatchNorm(x, name=f"{name}_bn", fix_gamma=False, eps=nets.EPS, momentum=0.9)


def relu(x: Any) -> Any:
    return mx.sym.Activation(x, act_type="relu")


def resnet20() -> Any:
    x = relu(normalized(mx.sym.Variable("data"), "stem", 16, 3))
    for name, _, filters, stride, _ in nets.blocks():
        y = relu(normalized(x, f"{name}_a", filters, 3, stride))
        y = normalized(y, f"{name}_b", filters, 3)
        x = normalized(x, f"{name}_short", filters, 1, stride) if stride > 1 else x
        x = relu(x + y)
    x = mx.sym.Pooling(x, pool_type="avg", global_pool=True, kernel=(8, 8))
    return mx.sym.FullyConnected(mx.sym.Flatten(x), name="fc", num_hidden=10)


NETS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20}


def arrays(values: dict[str, np.ndarray]) -> dict[str, Any]:
    return {k: mx.nd.array(v) for k, v in values.items()}


def setup(net: str, size: int, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A bound module, with an optimizer to `train`; the loss of its last step of some."""
    if net == "sgemm":
        return product(size)
    pictures, labels = nets.batch(net, size)
    symbol = mx.sym.SoftmaxOutput(NETS[net](), name="softmax")
    module = mx.mod.Module(symbol)
    module.bind([("data", pictures.shape)], [("softmax_label", labels.shape)], for_training=train)
    given = arrays(nets.parameters(net)), arrays(nets.states(net))
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
