"""Train a generator of images against a discriminator (Radford et al., arXiv:1511.06434).

    python examples/dcgan.py --epochs 8

The images are made here: a bright disc at a random place on a dark ground, 16 by 16 pixels. How
good generated ones are is measured by the distance to the nearest image of a disc.
"""

from __future__ import annotations

import argparse

import numpy as np

import gnomon as mx
from gnomon.gluon import Trainer, nn
from gnomon.gluon.loss import SigmoidBinaryCrossEntropyLoss

SIZE, NOISE = 16, 8


def discs(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """An image (1, 16, 16) from -1 to 1 for each centre."""
    y, x = np.mgrid[:SIZE, :SIZE]
    far = np.hypot(y - rows[:, None, None], x - columns[:, None, None])
    return np.float32(np.clip(4 - far, 0, 1) * 2 - 1)[:, None]


def generator() -> nn.HybridSequential:
    """Noise (n, 8, 1, 1) to images."""
    net = nn.HybridSequential(prefix="generator_")
    with net.name_scope():
        for channels, kernel, stride, padding in ((32, 4, 1, 0), (16, 4, 2, 1)):
            how = {"strides": stride, "padding": padding, "use_bias": False}
            net.add(nn.Conv2DTranspose(channels, kernel, **how))
            net.add(nn.BatchNorm(), nn.Activation("relu"))
        net.add(nn.Conv2DTranspose(1, 4, strides=2, padding=1, activation="tanh"))
    return net


def discriminator() -> nn.HybridSequential:
    """Images to one number, large for real ones."""
    net = nn.HybridSequential(prefix="discriminator_")
    with net.name_scope():
        for channels in (16, 32):
            net.add(nn.Conv2D(channels, 4, strides=2, padding=1), nn.LeakyReLU(0.2))
        net.add(nn.Dense(1))
    return net


def main() -> None:
    """Train in turn, and print how far generated images are from discs after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    epochs, rows = parser.parse_args().epochs, 64
    mx.random.seed(0)
    rng = np.random.default_rng(0)
    makes, judges = generator(), discriminator()
    loss_of = SigmoidBinaryCrossEntropyLoss()
    trainers = []
    for net in (makes, judges):
        net.initialize(mx.init.Normal(0.05))
        net.hybridize()
        rates = {"learning_rate": 0.002, "beta1": 0.5}
        trainers.append(Trainer(net.collect_params(), "adam", rates))
    places = np.arange(3, 13)
    every = discs(*(each.ravel() for each in np.meshgrid(places, places))).reshape(-1, SIZE * SIZE)
    yes, no = mx.nd.ones((rows,)), mx.nd.zeros((rows,))
    for epoch in range(epochs):
        for _ in range(40):
            real = mx.nd.array(discs(*rng.integers(3, 13, (2, rows))))
            noise = mx.nd.random.normal(shape=(rows, NOISE, 1, 1))
            with mx.autograd.record():
                fake = makes(noise)
                loss = loss_of(judges(real), yes) + loss_of(judges(fake.detach()), no)
            loss.backward()
            trainers[1].step(rows)
            with mx.autograd.record():
                loss = loss_of(judges(makes(noise)), yes)
            loss.backward()
            trainers[0].step(rows)
        found = makes(mx.nd.random.normal(shape=(100, NOISE, 1, 1))).asnumpy().reshape(100, 1, -1)
        nearest = np.sqrt(((found - every) ** 2).mean(axis=2)).min(axis=1)
        print(f"epoch {epoch}: distance {nearest.mean():.3f}")


if __name__ == "__main__":
    main()
