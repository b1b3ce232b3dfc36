"""Random blocks, hybridized and not, train to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.gluon import HybridBlock, Trainer, nn
from gnomon.gluon.contrib.nn import HybridConcurrent, Identity

STEPS = 3


class Residual(HybridBlock):
    """What a block gives, and its input, with a learned factor."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.inner = inner
            self.factor = self.params.get("factor", shape=(1,), init="ones")

    def hybrid_forward(self, F, x, factor):
        return x + F.broadcast_mul(self.inner(x), factor)


def layer(rng):
    """A random layer of rows."""
    units = int(rng.integers(2, 7))
    kinds = [
        lambda: nn.Dense(units, activation=str(rng.choice(["relu", "tanh", "sigmoid"]))),
        lambda: nn.Dense(units, use_bias=False, flatten=bool(rng.integers(2))),
        lambda: nn.BatchNorm(scale=bool(rng.integers(2)), momentum=0.7),
        lambda: nn.LayerNorm(center=bool(rng.integers(2))),
        nn.Swish,
        nn.PReLU,
        lambda: nn.ELU(0.3),
        lambda: nn.HybridLambda(lambda F, x: F.log_softmax(x) * 0.5),
        lambda: nn.HybridLambda(lambda F, x: F.concat(x, F.square(x), dim=1)),
    ]
    return kinds[rng.integers(len(kinds))]()


def block(rng, depth):
    """A random block of rows, of random blocks."""
    kind = rng.integers(4) if depth else 3
    if kind == 0:
        net = HybridConcurrent(axis=1)
        net.add(*(block(rng, depth - 1) for _ in range(rng.integers(1, 4))), Identity())
        return net
    if kind == 1:
        inner = HybridConcurrent(axis=1)
        inner.add(nn.LayerNorm())
        return Residual(inner)
    if kind == 2:
        net = nn.HybridSequential()
        net.add(*(block(rng, depth - 1) for _ in range(rng.integers(1, 4))))
        return net
    return layer(rng)


def made(seed):
    """The random network of a number."""
    rng = np.random.default_rng(seed)
    net = nn.HybridSequential()
    net.add(*(block(rng, 2) for _ in range(rng.integers(2, 5))), nn.Dense(2))
    return net


def trained(net, batches, optimizer):
    """Losses of a few steps, and the parameters afterwards."""
    trainer = Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01})
    losses = []
    for x in batches:
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)
            loss = (y * y).mean() + y.sum() * 0.1
        loss.backward()
        trainer.step(len(x))
        losses += [loss.asnumpy(), x.grad.asnumpy(), net(x).asnumpy()]
    return losses, [p.data().asnumpy() for p in net.collect_params().values()]


@pytest.mark.parametrize("seed", range(12))
def test_hybrid_is_plain(seed):
    rng = np.random.default_rng(1000 + seed)
    batches = [nd.array(rng.standard_normal((5, 4))) for _ in range(STEPS)]
    optimizer = ["sgd", "adam", "rmsprop"][seed % 3]
    plain, hybrid = made(seed), made(seed)
    for net in (plain, hybrid):
        net.initialize(mx.init.Normal(0.5))
        net(batches[0])
    mine, theirs = plain.collect_params().values(), hybrid.collect_params().values()
    for one, other in zip(mine, theirs, strict=True):
        other.set_data(one.data())
    hybrid.hybridize()
    expected, found = trained(plain, batches, optimizer), trained(hybrid, batches, optimizer)
    for one, other in zip(found[0] + found[1], expected[0] + expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)
