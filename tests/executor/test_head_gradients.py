"""Gradients of outputs that are given: programs read them where they lie, and keep nothing."""

import gc
import weakref

import numpy as np
import pytest

import gnomon as mx
from gnomon.executor import train_step
from gnomon.executor.inputs import Copy
from gnomon.gluon import nn
from gnomon.ndarray.lazy.notes import OFTEN

SHAPE = (2, 3, 4)
TURNS = OFTEN + 3  # from which on a step is a program


def variables():
    found = [mx.nd.array(np.arange(12.0).reshape(3, 4) + k) for k in range(2)]
    for x in found:
        x.attach_grad()
    return found


def backward(x, y, head):
    with mx.autograd.record():
        both = mx.nd.stack(x, y * y)
    both.backward(head)


def wanted(y, head):
    return [head[0], 2 * y.asnumpy() * head[1]]


def drawn(k):
    return np.random.default_rng(k).normal(size=SHAPE).astype(np.float32)


@pytest.fixture
def loads(monkeypatch):
    """The copies into programs that are made from now on."""
    made = []

    class Counted(Copy):
        def __init__(self, bound, gives=False):
            if not gives:
                made.append(bound)
            super().__init__(bound, gives)

    monkeypatch.setattr(train_step, "Copy", Counted)
    return made


def test_a_head_is_read_where_it_lies(loads):
    x, y = variables()
    for k in range(TURNS):
        head = mx.nd.array(drawn(k))
        backward(x, y, head)
        for found, expected in zip((x.grad, y.grad), wanted(y, drawn(k)), strict=True):
            np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
    assert not loads


def test_a_head_is_read_before_it_is_written():
    x, y = variables()
    for k in range(TURNS):
        head = mx.nd.array(drawn(k))
        backward(x, y, head)
        head[:] = 0
        np.testing.assert_array_equal(x.grad.asnumpy(), drawn(k)[0])
        assert not head.asnumpy().any()


def test_nothing_keeps_a_head():
    x, y = variables()
    for k in range(TURNS):
        head = mx.nd.array(drawn(k))
        backward(x, y, head)
    mx.nd.waitall()
    chunk = weakref.ref(head._chunk)
    del head
    gc.collect()
    assert chunk() is None


def test_a_head_may_be_part_of_an_array_or_what_the_step_writes():
    x, y = variables()
    many = np.stack([drawn(k) for k in range(TURNS)])
    rows = mx.nd.array(many)
    for k in range(TURNS):
        backward(x, y, rows[k])
        np.testing.assert_array_equal(x.grad.asnumpy(), many[k, 0])
    for _ in range(TURNS):
        own = x.grad.asnumpy()
        with mx.autograd.record():
            z = x * -1
        z.backward(x.grad)
        np.testing.assert_array_equal(x.grad.asnumpy(), -own)


def test_a_head_shared_with_numpy_is_copied():
    x, y = variables()
    memory = drawn(0)
    head = mx.nd.from_numpy(memory, zero_copy=True)
    for _ in range(TURNS):
        backward(x, y, head)
        np.testing.assert_array_equal(x.grad.asnumpy(), drawn(0)[0])


@pytest.mark.parametrize("apart", [False, True])
def test_of_a_network_with_both_passes_in_one_or_apart(apart, loads):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, padding=1), nn.Dense(4))
    net.initialize(mx.init.Xavier())
    data = [mx.nd.array(np.random.default_rng(k).normal(size=(2, 2, 5, 5))) for k in range(4)]
    heads = [mx.nd.array(np.random.default_rng(9 + k).normal(size=(2, 4))) for k in range(4)]

    def gradients(x, head):
        with mx.autograd.record():
            y = net(x)
        if apart:
            y.asnumpy()
        y.backward(head)
        head[:] = 0
        return [p.grad().asnumpy() for p in net.collect_params().values()]

    net(data[0])
    expected = [gradients(x, head.copy()) for x, head in zip(data, heads, strict=True)]
    net.hybridize()
    found = [gradients(x, head) for x, head in zip(data, heads, strict=True)]
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert not loads
