"""Results that a program gives away: written where they belong, and left alone by later runs."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.executor.latest import latest
from gnomon.ground.record import put
from gnomon.ndarray.lazy import notes
from gnomon.ndarray.lazy.fusion_group import here

STEPS = {
    "relu": lambda x: [mx.nd.relu(x)],
    "twice": lambda x: [mx.nd.exp(x), mx.nd.exp(x) * 2],
    "views": lambda x: [(y := mx.nd.tanh(x)), y.reshape((-1,)), y.T],
    "product": lambda x: [mx.nd.dot(x, x, transpose_b=True)],
    "rows": lambda x: [mx.nd.softmax(x), mx.nd.sum(x, axis=0)],
    "split": lambda x: list(mx.nd.split(x * x, num_outputs=2)),
    "convolution": lambda x: [mx.nd.Pooling(x.reshape((1, 1, 6, 8)), kernel=(2, 2))],
}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Programs at the third time, whatever was noted in vain before."""
    monkeypatch.setattr(notes, "OFTEN", 2)
    put(here.own, "noted", None)


def run(name, x, count):
    """The results of each of `count` steps on other values, and the gradients."""
    found = []
    for k in range(count):
        x[:] = values(k)
        with mx.autograd.record():
            made = STEPS[name](x)
        mx.autograd.backward(made)
        step = None if latest.pushed is None else latest.pushed.step  # it is held back yet
        found.append((made, x.grad.copy(), step))
    return found


def values(k):
    return np.random.default_rng(k).standard_normal((6, 8)).astype("f4")


@pytest.mark.parametrize("name", STEPS)
def test_each_run_leaves_the_results_of_others_alone(name):
    x = mx.nd.zeros((6, 8))
    x.attach_grad()
    with config.using(programs=False):
        right = run(name, x, 8)
    for (made, grad, _), (wanted, other, _) in zip(run(name, x, 8), right, strict=True):
        for a, b in zip([*made, grad], [*wanted, other], strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.native
@pytest.mark.parametrize("name", ["relu", "twice", "rows", "split"])
def test_results_are_written_where_they_belong(name):
    x = mx.nd.zeros((6, 8))
    x.attach_grad()
    *_, (_, _, step) = run(name, x, 8)
    assert step is not None
    assert len(step.gives) == 0
    assert len(step.moved) >= len(STEPS[name](x))


@pytest.mark.parametrize("last", ["relu", "sigmoid", None])
def test_a_compiled_block_whose_backward_pass_reads_its_output(last):
    net = mx.gluon.nn.Dense(4, activation=last, in_units=8)
    net.initialize()
    net.hybridize()
    x, kept = mx.nd.array(values(0)), []
    x.attach_grad()
    for k in range(4):
        x[:] = values(k)
        with mx.autograd.record():
            y = net(x)
        kept.append((y, y.asnumpy().copy()))
        y.backward()
    for y, then in kept:
        np.testing.assert_array_equal(y.asnumpy(), then)
