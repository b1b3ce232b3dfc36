"""Train a variational autoencoder on digits (Kingma and Welling, arXiv:1312.6114).

    python examples/autoencoder.py --epochs 20

It codes a digit as a normal distribution over a few numbers, and draws the digit from a sample of
it. The bound on the likelihood of held out digits is printed in nats a digit.
"""

from __future__ import annotations

import argparse

import numpy as np
from digits import divided

import gnomon as mx
from gnomon.gluon import HybridBlock, Trainer, nn
from gnomon.gluon.loss import SigmoidBinaryCrossEntropyLoss


class Autoencoder(HybridBlock):
    """Pixels to the bound on each picture's likelihood, with its sign turned."""

    def __init__(self, codes: int = 4, **kwargs) -> None:
        super().__init__(**kwargs)
        self.codes = codes
        self.loss = SigmoidBinaryCrossEntropyLoss()
        with self.name_scope():
            self.encode, self.decode = nn.HybridSequential(), nn.HybridSequential()
            self.encode.add(nn.Dense(96, activation="relu"), nn.Dense(2 * codes))
            self.decode.add(nn.Dense(96, activation="relu"), nn.Dense(64))

    def hybrid_forward(self, F, x):
        mean, log_variance = F.split(self.encode(x), num_outputs=2, axis=1)
        noise = F.random.normal_like(mean)
        code = mean + F.exp(0.5 * log_variance) * noise
        missed = self.loss(self.decode(code), x) * 64  # the loss is a mean over pixels
        surprise = 0.5 * F.sum(mean**2 + F.exp(log_variance) - log_variance - 1, axis=1)
        return missed + surprise


def main() -> None:
    """Train, print the bound after each epoch, and draw some digits that there never were."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    epochs = parser.parse_args().epochs
    np.random.seed(0)
    mx.random.seed(0)
    (train, _), (held_out, _) = divided()
    batches = mx.io.NDArrayIter(train.reshape(-1, 64), batch_size=32, shuffle=True)
    held_out = mx.nd.array(held_out.reshape(-1, 64))
    net = Autoencoder()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.005})
    for epoch in range(epochs):
        batches.reset()
        for batch in batches:
            with mx.autograd.record():
                loss = net(batch.data[0])
            loss.backward()
            trainer.step(32)
        print(f"epoch {epoch}: bound {net(held_out).mean().asscalar():.2f}")
    pictures = net.decode(mx.nd.random.normal(shape=(4, net.codes))).sigmoid()
    shades = np.array(list(" .:*#"))[(pictures.asnumpy() * 4.99).astype(int)].reshape(4, 8, 8)
    for line in shades.transpose(1, 0, 2):
        print("   ".join("".join(row) for row in line))


if __name__ == "__main__":
    main()
