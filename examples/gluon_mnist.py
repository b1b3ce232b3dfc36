"""Train a small convolutional network on digits with Gluon.

    python examples/gluon_mnist.py --epochs 5

The data are the 1,797 digits of 8 by 8 pixels that the package carries.
"""

from __future__ import annotations

import argparse

import numpy as np
from digits import divided

import gnomon as mx
from gnomon.gluon import Trainer, nn
from gnomon.gluon.loss import SoftmaxCrossEntropyLoss


def network() -> nn.HybridSequential:
    """Two convolutions and two dense layers."""
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(
            nn.Conv2D(16, 3, padding=1, activation="relu"),
            nn.MaxPool2D(),
            nn.Conv2D(32, 3, padding=1, activation="relu"),
            nn.MaxPool2D(),
            nn.Dense(64, activation="relu"),
            nn.Dropout(0.2),
            nn.Dense(10),
        )
    return net


def accuracy(net: nn.HybridSequential, batches: mx.io.DataIter) -> float:
    """The part of the pictures that the network names rightly."""
    metric = mx.metric.Accuracy()
    batches.reset()
    for batch in batches:
        found, kept = net(batch.data[0]), len(batch.data[0]) - batch.pad
        metric.update([batch.label[0][:kept]], [found[:kept]])
    return metric.get()[1]


def main() -> None:
    """Train, and print the accuracy on pictures that were held back after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--plain", action="store_true", help="do not compile the network")
    options = parser.parse_args()

    mx.random.seed(1)
    np.random.seed(1)
    size, (train, test) = options.batch_size, divided()
    train = mx.io.NDArrayIter(*train, size, shuffle=True)
    test = mx.io.NDArrayIter(*test, size)

    net = network()
    net.initialize(mx.init.Xavier())
    if not options.plain:
        net.hybridize()
    loss_of = SoftmaxCrossEntropyLoss()
    trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    for epoch in range(options.epochs):
        train.reset()
        total = 0.0
        for batch in train:
            with mx.autograd.record():
                loss = loss_of(net(batch.data[0]), batch.label[0])
            loss.backward()
            trainer.step(size)
            total += loss.mean().asscalar()
        found = accuracy(net, test)
        print(f"epoch {epoch}: loss {total:.3f}, accuracy {found:.3f}")


if __name__ == "__main__":
    main()
