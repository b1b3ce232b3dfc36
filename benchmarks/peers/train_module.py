"""Worker: training steps by the Module of gnomon or of MXNet: `train_module.py PACKAGE`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import nets
from protocol import Step, serve

PACKAGE = sys.argv[1]
mx = importlib.import_module(PACKAGE)
waitall = mx.nd.waitall


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


def setup(net: str, size: int) -> tuple[Step, Step, dict[str, Any]]:
    """A bound module with an optimizer; its loss after some steps."""
    pictures, labels = nets.batch(net, size)
    symbol = mx.sym.SoftmaxOutput({"mlp": mlp, "lenet": lenet}[net](), name="softmax")
    module = mx.mod.Module(symbol)
    module.bind([("data", pictures.shape)], [("softmax_label", labels.shape)])
    module.init_params(arg_params={k: mx.nd.array(v) for k, v in nets.parameters(net).items()})
    rate = {"learning_rate": nets.LEARNING_RATE, "momentum": nets.MOMENTUM, "wd": 0.0}
    module.init_optimizer(optimizer="sgd", optimizer_params=rate)
    batch = mx.io.DataBatch([mx.nd.array(pictures)], [mx.nd.array(labels)])

    def step() -> None:
        module.forward_backward(batch)
        module.update()

    for _ in range(nets.PROOF):
        step()
    module.forward(batch, is_train=False)
    loss = nets.loss(module.get_outputs()[0].asnumpy(), labels)
    return step, waitall, {"loss": loss}


if __name__ == "__main__":
    serve(f"{PACKAGE} {mx.__version__}", setup)
