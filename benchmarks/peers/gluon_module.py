"""Worker: steps by Gluon of gnomon or of MXNet: `gluon_module.py PACKAGE hybrid|plain`."""

from __future__ import annotations

import sys
from typing import Any

import gluon_data
import gluon_nets as nets
from protocol import Step, serve

mx = nets.mx
PACKAGE, KIND = sys.argv[1:]


NETS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "deep": (nets.deep, (8,)),
    "mlp": (nets.mlp, (784,)),
    "lenet": (nets.lenet, (1, 28, 28)),
    "lstm": (nets.Recurrent, (35, 200)),
    "transformer": (nets.transformer, (32, 64)),
    "resnet18": (nets.resnet18, (3, 32, 32)),
}


def started(name: str, size: int) -> tuple[Any, Any, Any]:
    """A network whose weights follow from their order, a batch and its labels."""
    make, shape = NETS[name]
    pictures, labels = map(mx.nd.array, gluon_data.batch(size, shape))
    net = make()
    net.initialize()
    net(pictures)
    weights = [p for p in net.collect_params().values() if len(p.shape) > 1]
    drawn = gluon_data.weights([p.shape for p in weights])
    for param, values in zip(weights, drawn, strict=True):
        param.set_data(mx.nd.array(values))
    return net, pictures, labels


def setup(net: str, size: int, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A network with a trainer; its loss after some steps."""
    block, pictures, labels = started(net, size)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    if KIND == "hybrid":
        block.hybridize(static_alloc=True, static_shape=True)
        loss.hybridize(static_alloc=True, static_shape=True)
    settings = {"learning_rate": 0.05, "momentum": 0.9}
    trainer = mx.gluon.Trainer(block.collect_params(), "sgd", settings)
    last = [None]

    def step() -> None:
        with mx.autograd.record():
            last[0] = value = loss(block(pictures), labels)
        value.backward()
        trainer.step(size)

    def predict() -> None:
        last[0] = loss(block(pictures), labels)

    chosen = step if train else predict
    for _ in range(gluon_data.PROOF):
        chosen()
    proof: Any = last[0]
    loss_then = float(proof.asnumpy().mean())
    for _ in range(gluon_data.WARM):
        chosen()
    mx.nd.waitall()
    return chosen, mx.nd.waitall, {"loss": loss_then}


if __name__ == "__main__":
    serve(f"{PACKAGE} {mx.__version__} {KIND}", setup)
