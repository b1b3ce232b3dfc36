"""Learn how alike digits are: three of them at a time through the same network.

    python examples/siamese.py --epochs 5

The triplet loss (Schroff et al., arXiv:1503.03832) draws a digit to another one of its kind, and
away from one of another kind. Then a digit's kind is that of its nearest neighbour.
"""

from __future__ import annotations

import argparse

import numpy as np
from digits import divided

import gnomon as mx
from gnomon.gluon import HybridBlock, Trainer, nn
from gnomon.gluon.loss import TripletLoss

WIDTH = 4  # few numbers, so that being alike has to be learned


class Embedding(HybridBlock):
    """Pictures to points on a sphere."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.layers = nn.HybridSequential()
            self.layers.add(nn.Conv2D(16, 3, activation="relu"), nn.MaxPool2D())
            self.layers.add(nn.Dense(64, activation="relu"), nn.Dense(WIDTH))

    def hybrid_forward(self, F, x):
        return F.L2Normalization(self.layers(x))


def triplets(
    rng: np.random.Generator, pictures: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, ...]:
    """For each picture one of its kind, and one of another."""
    kinds = [np.flatnonzero(labels == kind) for kind in range(10)]
    others = (labels.astype(int) + rng.integers(1, 10, len(labels))) % 10
    alike = [rng.choice(kinds[int(kind)]) for kind in labels]
    unlike = [rng.choice(kinds[kind]) for kind in others]
    return pictures, pictures[alike], pictures[unlike]


def accuracy(net: Embedding, known: tuple, asked: tuple) -> float:
    """The part of pictures whose nearest neighbour among the known is of their kind."""
    points, places = net(mx.nd.array(known[0])), net(mx.nd.array(asked[0]))
    nearest = mx.nd.dot(places, points, transpose_b=True).argmax(axis=1).asnumpy()
    return (known[1][nearest.astype(int)] == asked[1]).mean()


def main() -> None:
    """Train, and print how many held out digits have a neighbour of their kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    epochs = parser.parse_args().epochs
    np.random.seed(1)
    mx.random.seed(1)
    rng = np.random.default_rng(1)
    train, test = divided()
    net, loss_of = Embedding(), TripletLoss(margin=0.5)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.005})
    print(f"before: accuracy {accuracy(net, train, test):.3f}")
    for epoch in range(epochs):
        batches = mx.io.NDArrayIter(list(triplets(rng, *train)), batch_size=50, shuffle=True)
        for batch in batches:
            with mx.autograd.record():
                loss = loss_of(*map(net, batch.data))
            loss.backward()
            trainer.step(50)
        print(f"epoch {epoch}: accuracy {accuracy(net, train, test):.3f}")


if __name__ == "__main__":
    main()
