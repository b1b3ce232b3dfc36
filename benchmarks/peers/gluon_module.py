"""Worker: steps by Gluon of gnomon or of MXNet: `gluon_module.py PACKAGE hybrid|plain`."""

from __future__ import annotations

import importlib
import sys
import zlib
from typing import Any

import numpy as np
from protocol import Step, serve

PACKAGE, KIND = sys.argv[1:]
mx = importlib.import_module(PACKAGE)
gluon, nn = mx.gluon, mx.gluon.nn
PROOF = 5  # steps whose loss is compared


def deep() -> Any:
    """Twenty small layers, of which a step is mostly what is around them."""
    net = nn.HybridSequential()
    net.add(*(nn.Dense(8, activation="relu") for _ in range(19)), nn.Dense(4))
    return net


def mlp() -> Any:
    """Layers of 128, 64 and 10."""
    net = nn.HybridSequential()
    net.add(nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(10))
    return net


def lenet() -> Any:
    """Two convolutions with pooling, two dense layers."""
    net = nn.HybridSequential()
    net.add(
        *(nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D()),
        *(nn.Conv2D(50, 5, activation="tanh"), nn.MaxPool2D()),
        *(nn.Dense(500, activation="tanh"), nn.Dense(10)),
    )
    return net


NETS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "deep": (deep, (8,)),
    "mlp": (mlp, (784,)),
    "lenet": (lenet, (1, 28, 28)),
}


def started(name: str, size: int) -> tuple[Any, Any, Any]:
    """A network with parameters that their names decide, a batch and its labels."""
    make, shape = NETS[name]
    rng = np.random.RandomState(7)
    pictures = mx.nd.array(rng.uniform(-1, 1, (size, *shape)))
    labels = mx.nd.array(rng.randint(0, 4, size))
    with mx.name.NameManager():
        net = make()
    net.initialize()
    net(pictures)
    for key, param in net.collect_params().items():
        rng = np.random.RandomState(zlib.crc32(key.encode()))
        scale = np.sqrt(3 / max(1, np.prod(param.shape[1:])))
        param.set_data(mx.nd.array(rng.uniform(-scale, scale, param.shape)))
    return net, pictures, labels


def setup(net: str, size: int, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A network with a trainer; its loss after some steps."""
    block, pictures, labels = started(net, size)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    if KIND == "hybrid":
        block.hybridize(static_alloc=True, static_shape=True)
        loss.hybridize(static_alloc=True, static_shape=True)
    settings = {"learning_rate": 0.05, "momentum": 0.9}
    trainer = gluon.Trainer(block.collect_params(), "sgd", settings)
    last = [None]

    def step() -> None:
        with mx.autograd.record():
            last[0] = value = loss(block(pictures), labels)
        value.backward()
        trainer.step(size)

    def predict() -> None:
        last[0] = loss(block(pictures), labels)

    chosen = step if train else predict
    for _ in range(PROOF):
        chosen()
    proof: Any = last[0]
    return chosen, mx.nd.waitall, {"loss": float(proof.asnumpy().mean())}


if __name__ == "__main__":
    serve(f"{PACKAGE} {mx.__version__} {KIND}", setup)
