"""Networks in training are copied and pickled, and go on by themselves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon.gluon import nn

X = nd.array(np.linspace(-1, 1, 12).reshape(4, 3))


def trained(hybrid):
    """A network and its trainer, some steps on their way."""
    mx.random.seed(5)
    net = nn.HybridSequential()
    net.add(nn.Dense(5, activation="relu", in_units=3), nn.BatchNorm(), nn.Dense(2))
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    step(net, trainer)
    return net, trainer


def step(net, trainer):
    for _ in range(3):
        with autograd.record():
            loss = (net(X) ** 2).sum()
        loss.backward()
        trainer.step(4)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("hybrid", [False, True])
def test_a_network_and_its_trainer_in_training(hybrid, duplicate):
    net, trainer = trained(hybrid)
    before = net(X).asnumpy()
    other, its_trainer = duplicate((net, trainer))
    step(net, trainer)
    np.testing.assert_array_equal(other(X).asnumpy(), before)  # it has parameters of its own
    step(other, its_trainer)
    np.testing.assert_array_equal(other(X).asnumpy(), net(X).asnumpy())
    assert not np.array_equal(other(X).asnumpy(), before)


def test_a_block_of_a_symbol(tmp_path):
    net, _ = trained(True)
    net.export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(
        str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
    )
    expected = block(X).asnumpy()
    for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        np.testing.assert_array_equal(other(X).asnumpy(), expected)
