"""Change an image until a network sees the texture of another one in it (Gatys, arXiv:1508.06576).

    python examples/style.py --steps 100

The network is not trained: filters at random tell textures apart as well (Ustyuzhaninov et al.,
arXiv:1606.00021). What is optimised is the input. The two images are made here: stripes for the
texture, a disc for the content.
"""

from __future__ import annotations

import argparse

import numpy as np

import gnomon as mx
from gnomon.gluon import HybridBlock, nn

SIZE = 32


class Features(HybridBlock):
    """What two layers of filters see."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.first = nn.Conv2D(32, 5, padding=2, activation="relu")
            self.pool = nn.AvgPool2D()
            self.second = nn.Conv2D(32, 5, padding=2, activation="relu")

    def hybrid_forward(self, F, x):
        first = self.first(x)
        return first, self.second(self.pool(first))


def gram(features: mx.nd.NDArray) -> mx.nd.NDArray:
    """How filters fire together: the texture, without its places."""
    rows = features.reshape((features.shape[1], -1))
    return mx.nd.dot(rows, rows, transpose_b=True) / rows.shape[1]


def main() -> None:
    """Optimise, and print how much of the difference in texture is left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps
    mx.random.seed(0)
    y, x = np.mgrid[:SIZE, :SIZE]
    stripes = np.sin((x + y) * 1.2)
    disc = np.where(np.hypot(x - 16, y - 16) < 9, 0.8, -0.8)
    texture, content = (mx.nd.array(image[None, None]) for image in (stripes, disc))

    net = Features()
    net.initialize(mx.init.Xavier(magnitude=6))
    net.hybridize()
    goals, kept = [gram(each) for each in net(texture)], net(content)[1]
    picture = mx.gluon.Parameter("picture", shape=content.shape)
    picture.initialize(mx.init.Constant(content))
    trainer = mx.gluon.Trainer([picture], "adam", {"learning_rate": 0.05})
    begin = None
    for step in range(1, steps + 1):
        with mx.autograd.record():
            found = net(picture.data())
            pairs = zip(found, goals, strict=True)
            style = sum(((gram(each) - goal) ** 2).mean() for each, goal in pairs)
            loss = style + 0.01 * ((found[1] - kept) ** 2).mean()
        loss.backward()
        trainer.step(1)
        begin = begin or style.asscalar()
        if step % 20 == 0 or step == steps:
            print(f"step {step}: left {style.asscalar() / begin:.4f}")


if __name__ == "__main__":
    main()
