"""Train a language model with an LSTM of Gluon, batch after batch of one long text.

    python examples/language_gluon.py --epochs 4

The text is made here: words of three letters in a fixed order, with random words between.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import gnomon as mx
from gnomon.gluon import Trainer, nn, rnn
from gnomon.gluon.loss import SoftmaxCrossEntropyLoss
from gnomon.gluon.utils import clip_global_norm

WORDS = 12


def text(length: int) -> np.ndarray:
    """Numbers of words: each is followed by the next but one, except now and then."""
    rng = np.random.default_rng(0)
    found = [0]
    while len(found) < length:
        found.append(rng.integers(WORDS) if rng.random() < 0.1 else (found[-1] + 2) % WORDS)
    return np.array(found, np.float32)


class Model(mx.gluon.HybridBlock):
    """Words embedded, an LSTM, and every step classified."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.embed = nn.Embedding(WORDS, 16)
            self.lstm = rnn.LSTM(32, input_size=16)
            self.out = nn.Dense(WORDS, flatten=False, in_units=32)

    def hybrid_forward(self, F, x, h, c):
        outputs, states = self.lstm(self.embed(x), [h, c])
        return self.out(outputs), states


def main() -> None:
    """Train, and print the perplexity after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    epochs, rows, steps = parser.parse_args().epochs, 10, 20
    mx.random.seed(0)
    whole = text(rows * steps * 12 + rows).reshape(rows, -1).T  # (time, rows)
    net, loss = Model(), SoftmaxCrossEntropyLoss(axis=2, batch_axis=1)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
    for epoch in range(epochs):
        states, total = net.lstm.begin_state(batch_size=rows), 0.0
        starts = range(0, len(whole) - steps, steps)
        for start in starts:
            x = mx.nd.array(whole[start : start + steps])
            y = mx.nd.array(whole[start + 1 : start + steps + 1])
            states = [state.detach() for state in states]  # the gradient ends at the batch
            with mx.autograd.record():
                output, states = net(x, *states)
                found = loss(output, y)
            found.backward()
            clip_global_norm([p.grad() for p in net.collect_params().values()], 5.0)
            trainer.step(rows)
            total += found.mean().asscalar()
        print(f"epoch {epoch}: perplexity {math.exp(total / len(starts)):.3f}")
    print(f"perplexity: {math.exp(total / len(starts)):.3f}")


if __name__ == "__main__":
    main()
