"""Train a small transformer to say a sequence again.

    python examples/transformer_copy.py --steps 400

It reads random digits, a sign, and the same digits once more, and predicts each next digit. Only
what follows the sign can be known, and only by looking back at the place that is so far behind.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import gnomon as mx
from gnomon.gluon import HybridBlock, Trainer, nn
from gnomon.gluon.loss import SoftmaxCrossEntropyLoss

DIGITS, LENGTH, WIDTH, HEADS = 10, 8, 32, 4
STEPS = 2 * LENGTH  # the last digit is only predicted


class Attention(HybridBlock):
    """Causal self-attention by several heads (Vaswani et al., arXiv:1706.03762)."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        mask = np.triu(np.full((STEPS, STEPS), -1e9, np.float32), 1)
        with self.name_scope():
            self.parts = nn.Dense(3 * WIDTH, flatten=False, in_units=WIDTH)
            self.out = nn.Dense(WIDTH, flatten=False, in_units=WIDTH)
            self.mask = self.params.get_constant("mask", mask[None])

    def hybrid_forward(self, F, x, mask):
        def heads(part):  # (rows, steps, width) as (rows * heads, steps, width / heads)
            part = part.reshape((0, 0, HEADS, -1)).transpose((0, 2, 1, 3))
            return part.reshape((-3, 0, 0))

        query, key, value = map(heads, F.split(self.parts(x), num_outputs=3, axis=2))
        scores = F.batch_dot(query, key, transpose_b=True) * math.sqrt(HEADS / WIDTH)
        weights = F.softmax(F.broadcast_add(scores, mask), axis=2)
        found = F.batch_dot(weights, value).reshape((-4, -1, HEADS, 0, 0))
        return self.out(found.transpose((0, 2, 1, 3)).reshape((0, 0, -3)))


class Layer(HybridBlock):
    """Attention, then a dense layer at each step; each added to what came in."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.norm1, self.norm2 = nn.LayerNorm(), nn.LayerNorm()
            self.attention = Attention()
            self.wide = nn.Dense(4 * WIDTH, flatten=False, activation="relu")
            self.narrow = nn.Dense(WIDTH, flatten=False)

    def hybrid_forward(self, F, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(self.wide(self.norm2(x)))


class Transformer(HybridBlock):
    """Digits and their places embedded, two layers, and the next digit."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.embed = nn.Embedding(DIGITS + 1, WIDTH)
            self.place = self.params.get("place", shape=(1, STEPS, WIDTH), init=mx.init.Normal(0.1))
            self.layers = nn.HybridSequential()
            self.layers.add(Layer(), Layer())
            self.out = nn.Dense(DIGITS, flatten=False)

    def hybrid_forward(self, F, x, place):
        return self.out(self.layers(F.broadcast_add(self.embed(x), place)))


def batch(rng: np.random.Generator, rows: int = 64) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    """Sequences, and what comes next."""
    digits = rng.integers(0, DIGITS, (rows, LENGTH))
    whole = np.concatenate([digits, np.full((rows, 1), DIGITS), digits], axis=1)
    return mx.nd.array(whole[:, :-1]), mx.nd.array(whole[:, 1:])


def main() -> None:
    """Train, and print which part of the digits behind the sign is right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    steps = parser.parse_args().steps
    mx.random.seed(0)
    rng = np.random.default_rng(0)
    net, loss_of = Transformer(), SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    schedule = mx.lr_scheduler.CosineScheduler(steps, base_lr=0.005, warmup_steps=steps // 10)
    rates = {"learning_rate": 0.005, "lr_scheduler": schedule}
    trainer = Trainer(net.collect_params(), "adam", rates)
    for step in range(1, steps + 1):
        x, y = batch(rng)
        with mx.autograd.record():
            loss = loss_of(net(x)[:, LENGTH:], y[:, LENGTH:])
        loss.backward()
        trainer.step(len(x))
        if step % 50 == 0 or step == steps:
            right = net(x)[:, LENGTH:].argmax(axis=2) == y[:, LENGTH:]
            print(f"step {step}: right {right.mean().asscalar():.3f}")


if __name__ == "__main__":
    main()
