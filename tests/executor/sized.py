"""Training steps of a random block on batches of many lengths: `sized.py SEED LENGTH...`.

Prints for each length a digest of the bits of the outputs and of all gradients, which are those of
a step on this length alone: nothing is learned from one to the next.
"""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any

import numpy as np

import gnomon as mx

WIDTH = 12


class Mixed(mx.gluon.HybridBlock):
    """Layers drawn by chance, of values of shape (2, length, WIDTH)."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        kinds = ("dense", "norm", "attention", "scale", "mean", "gate")
        self.kinds = [draw.choice(kinds) for _ in range(draw.randint(3, 6))]
        for k, kind in enumerate(self.kinds):
            if kind in ("dense", "gate"):
                layer = mx.gluon.nn.Dense(WIDTH, flatten=False, in_units=WIDTH)
                setattr(self, f"layer{k}", layer)
            elif kind == "norm":
                setattr(self, f"layer{k}", mx.gluon.nn.LayerNorm(in_channels=WIDTH))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        for k, kind in enumerate(self.kinds):
            if kind in ("dense", "norm"):
                x = getattr(self, f"layer{k}")(x)
            elif kind == "gate":
                x = x * F.sigmoid(getattr(self, f"layer{k}")(x))
            elif kind == "scale":
                x = F.tanh(x.transpose((1, 0, 2)) * 0.5).transpose((1, 0, 2))
            elif kind == "mean":
                x = F.broadcast_sub(x, F.mean(x, axis=1, keepdims=True))
            else:
                scores = F.softmax(F.batch_dot(x, x, transpose_b=True) * 0.25, axis=2)
                x = x + F.batch_dot(scores, x)
        return x


def main() -> None:
    seed, lengths = int(sys.argv[1]), [int(n) for n in sys.argv[2:]]
    draw, made = random.Random(seed), np.random.RandomState(seed)
    net, is_hybrid = Mixed(draw), draw.random() < 0.5
    net.initialize()
    params = [p for _, p in sorted(net.collect_params().items())]
    for p in params:
        p.set_data(mx.nd.array(made.standard_normal(p.shape)))
    if is_hybrid:
        net.hybridize()
    for n in lengths:
        x = mx.nd.array(np.random.RandomState(n).standard_normal((2, n, WIDTH)))
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)
            loss = (y * y).mean()
        loss.backward()
        found = hashlib.sha256()
        for array in (y, loss, x.grad, *(p.grad() for p in params)):
            found.update(array.asnumpy().tobytes())
        print(n, found.hexdigest())


if __name__ == "__main__":
    main()
