"""What tests of graphs that are bound for other sizes share."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon.executor.programs import resized
from gnomon.executor.programs.resized import Kin


@pytest.fixture
def served(monkeypatch):
    """A list that gets the sizes of each layout that kin gave."""
    found, usual = [], Kin.layout

    def layout(self, net, mode, draws):
        made = usual(self, net, mode, draws)
        if made is not None:
            found.append(tuple(b.shape for b in net.inputs.values()))
        return made

    monkeypatch.setattr(Kin, "layout", layout)
    return found


@pytest.fixture
def alone(monkeypatch):
    """A function that has bindings told nothing of others, from then on or no more."""
    usual = resized.laid_out

    def switch(on):
        def laid_out(net, mode, draws):
            return usual(net, mode._replace(alone=on), draws)

        monkeypatch.setattr("gnomon.executor.run.laid_out", laid_out)

    return switch


def of_function(function):
    """A block with no parameters but a table, where the function takes that."""

    class Block(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            if function.__code__.co_argcount > 2:
                self.table = self.params.get("table", shape=(16, 4))

        def hybrid_forward(self, F, x, **params):
            return function(F, x, *params.values())

    return Block


def trained(net, x, repeated=1):
    """Outputs and gradients, where several calls are recorded before the first backward pass."""
    x = nd.array(x)
    x.attach_grad()
    with autograd.record():
        ys = [net(x * k) for k in range(1, repeated + 1)]
        total = (
            sum((y * y).sum() for y in ys[1:]) + (ys[0] * ys[0]).sum() if repeated > 1 else ys[0]
        )
    total.backward()
    given = [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
    return [*(y.asnumpy() for y in ys), x.grad.asnumpy(), *given]


def predicted(net, x):
    return [net(nd.array(x)).asnumpy()]


def same(make, alone, shapes, step=trained):
    """Blocks give the same bits on arrays of all shapes, bound by kin or alone."""
    both = []
    for on in (True, False):
        alone(on)
        mx.random.seed(3)
        net = make()
        net.initialize(mx.init.Uniform(0.5))
        net.hybridize()
        draw = np.random.default_rng(0)
        both.append([step(net, draw.normal(size=shape)) for shape in shapes])
    for shape, *found in zip(shapes, *both, strict=True):
        for got, right in zip(*found, strict=True):
            np.testing.assert_array_equal(got, right, err_msg=f"{shape}")
