"""Blocks that are not compiled predict by programs where the same came often: nobody can tell.

Whatever changes between calls, they give what their operators give one by one.
"""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from ndarray.noted_steps import AT_FIRST, begin_anew, begin_soon, counted

import gnomon as mx
from gnomon import autograd, config, gluon, nd
from gnomon.base import GnomonError
from gnomon.executor.recorded_step import Plan
from gnomon.gluon import nn
from gnomon.ndarray.lazy import notes
from gnomon.ndarray.lazy.fusion_group import here

STEPS = AT_FIRST + 6


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    begin_soon(monkeypatch)


@pytest.fixture
def runs(monkeypatch):
    """A list that gets an item for each call that a program does."""
    return counted(monkeypatch, Plan, "forward")


class Net(gluon.HybridBlock):
    """Of as many operators as pay, with states, and a hook in the middle."""

    def __init__(self, **given):
        super().__init__(**given)
        self.first = nn.Conv2D(16, 3, padding=1, in_channels=3, use_bias=False)
        self.norm = nn.BatchNorm(in_channels=16)
        self.second = nn.Conv2D(16, 3, padding=1, in_channels=16)
        self.out = nn.Dense(5, in_units=64)
        self.looks = None

    def hybrid_forward(self, F, x):
        x = F.relu(self.norm(self.first(x)))
        y = F.Pooling(x + self.second(x), kernel=(2, 2), stride=(2, 2), pool_type="max")
        if self.looks is not None:
            y = self.looks(y)
        return F.softmax(self.out(F.reshape(y, shape=(0, -1)) * 2))


def made():
    mx.random.seed(3)
    net = Net()
    net.initialize(mx.init.Xavier())
    net.norm.running_mean.set_data(nd.arange(16) / 20)
    return net


def batch(k, size=2):
    return nd.array(np.random.default_rng(k).normal(size=(size, 3, 4, 4)))


def both_ways(step):
    """What `step(number, net)` gives for each number, with programs and without."""
    ways = []
    for programs in (True, False):
        begin_anew()
        with config.using(programs=programs):
            net = made()
            ways.append([step(k, net) for k in range(STEPS)])
    for k, (found, right) in enumerate(zip(*ways, strict=True)):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6, err_msg=f"call {k}")


@pytest.mark.parametrize("is_same", [True, False])
def test_what_comes_often_is_a_program(is_same, runs):
    x = batch(0)
    both_ways(lambda k, net: net(x if is_same else batch(k)).asnumpy())
    assert len(runs) == STEPS - AT_FIRST
    assert runs[0].stays
    assert len(runs[0].fed) == (0 if is_same else 1)


def test_an_input_that_is_another_one_late(runs):
    first = batch(0)
    both_ways(lambda k, net: net(first if k < STEPS - 2 else batch(k)).asnumpy())
    assert len(set(map(id, runs))) == 2


def set_data(net):
    net.second.weight.set_data(net.second.weight.data() * 1.5)


def write_in_place(net):
    net.first.weight.data()[:] *= -1


def write_a_view(net):
    net.out.weight.data()[1:3] = 0.25
    net.second.weight.data().reshape((-1,))[7:90] = 1


def write_states(net):
    net.norm.running_var.data()[:] += 1
    net.norm.running_mean.set_data(nd.ones((16,)))


def write_from_a_thread(net):
    thread = threading.Thread(target=write_in_place, args=(net,))
    thread.start()
    thread.join()


def load(net):
    other = made()
    set_data(other)
    for mine, theirs in zip(net._children.values(), other._children.values(), strict=True):
        for ours, other_one in zip(mine.params.values(), theirs.params.values(), strict=True):
            ours.set_data(other_one.data())


def begin_again(net):
    net.initialize(mx.init.One(), force_reinit=True)


def cast(net):
    net.cast("float64")
    net.cast("float32")


def freeze(net):
    net.collect_params().setattr("grad_req", "null")


def train(net):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    for k in range(3):
        with autograd.record():
            loss = net(batch(k)).square().sum()
        loss.backward()
        trainer.step(2)


def train_mode(net):
    with autograd.train_mode():
        net(batch(9)).wait_to_read()


def branch(net):
    net.looks = lambda y: y * 2 if y.sum().asscalar() > 100 else y - 1


def write_inside(net):
    def looks(y):
        y[:] = y + 1
        y += 2
        y[0] = 0.5
        return y

    net.looks = looks


def write_views_inside(net):
    def looks(y):
        whole = y.reshape((-1,))
        whole[:5] = 2
        y[0][1:] = 3
        rest = y[:, 3:]
        rest *= 2
        return y

    net.looks = looks


def index_inside(net):
    net.looks = lambda y: nd.concat(y[:, 8:], y[:, :8], dim=1) + net.out.bias.data()[0]


def record_inside(net):
    def looks(y):
        x = nd.ones((2,))
        x.attach_grad()
        with autograd.record():
            z = (x * y.sum()).sum()
        z.backward()
        return y + x.grad[0]

    net.looks = looks


def write_an_operand_inside(net):
    def looks(y):
        net.first.weight.data()[:] *= 0.5
        return y

    net.looks = looks


def fail(net):
    def looks(y):
        raise ZeroDivisionError

    net.looks = looks
    with pytest.raises(ZeroDivisionError):
        net(batch(3))
    net.looks = lambda y: nd.dot(y, nd.ones((3, 1)))
    with pytest.raises(GnomonError):
        net(batch(3))
    net.looks = None


def predict_within_a_record(net):
    w = nd.ones((5,))
    w.attach_grad()
    with autograd.record():
        loss = (w * 3).sum()
        with autograd.pause():
            seen = net(batch(1))
        assert (loss._pending_in is here.own.noted) == config.get("programs")
        loss = loss + (w * seen).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), 3 + seen.asnumpy().sum(axis=0), rtol=1e-5)


def hybridize_a_part(net):
    net.second.hybridize()


CHANGES = [
    set_data, write_in_place, write_a_view, write_states, write_from_a_thread, load, begin_again,
    cast, freeze, train, train_mode, branch, write_inside, write_views_inside, index_inside,
    record_inside, write_an_operand_inside, fail, predict_within_a_record, hybridize_a_part,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_calls(change, runs):
    def step(k, net):
        if k in (AT_FIRST + 2, AT_FIRST + 4):
            mx.random.seed(k)
            change(net)
        return net(batch(k)).asnumpy()

    both_ways(step)
    assert runs


def test_what_is_given_and_returned_may_be_written():
    def step(k, net):
        x = batch(k)
        y = net(x)
        x[:] = 0
        z = net(x)
        y += z
        return np.append(y.asnumpy(), z.asnumpy())

    both_ways(step)


def test_nothing_waits_behind_a_call(runs):
    net, x = made(), batch(0)
    held = []
    net.looks = lambda y: held.append(y) or y
    for _ in range(STEPS):
        y = net(x)
        assert y._pending_in is not here.own.predicted
        assert y._tape is None
        assert held[-1]._pending_in is not here.own.predicted
    assert runs
    for one in held[1:]:
        np.testing.assert_allclose(one.asnumpy(), held[0].asnumpy(), rtol=1e-5, atol=1e-6)


def test_short_blocks_are_not_noted(runs):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=4), nn.Dense(3, in_units=3, activation="relu"))
    net.initialize()
    for k in range(2):
        net(nd.ones((2, 4)) * k).wait_to_read()
    assert not runs
    assert net._is_brief
    more = [nn.Dense(3, in_units=3) for _ in range(8)]
    for layer in more:
        layer.initialize()
    net.add(*more)
    for k in range(STEPS):
        net(nd.ones((2, 4)) * k).wait_to_read()
    assert len(runs) == STEPS - AT_FIRST


def test_programs_go_with_the_weights(runs):
    net = made()
    for k in range(STEPS):
        net(batch(k)).wait_to_read()
    plan, weight = weakref.ref(runs[-1]), weakref.ref(net.first.weight.data()._chunk)
    runs.clear()
    del net
    gc.collect()
    assert plan() is None
    assert weight() is None


def test_an_input_that_stays_is_not_kept(runs):
    net, x = made(), batch(0)
    for _ in range(STEPS):
        right = net(x).asnumpy()
    assert not runs[-1].fed
    memory = weakref.ref(x._chunk)
    runs.clear()
    del x
    gc.collect()
    assert memory() is None
    for _ in range(2 * STEPS):
        np.testing.assert_allclose(net(batch(0)).asnumpy(), right, rtol=1e-5, atol=1e-6)
    assert len(set(map(id, runs))) == 1


def test_inputs_of_other_shapes(runs):
    both_ways(lambda k, net: net(batch(k, 1 + k % 2)).asnumpy().sum())
    assert runs


def test_threads_predict_beside_each_other():
    net, failed = made(), []
    right = [net(batch(k)).asnumpy() for k in range(4)]

    def work(number):
        for k in range(16):
            found = net(batch((k + number) % 4)).asnumpy()
            if not np.allclose(found, right[(k + number) % 4], rtol=1e-4, atol=1e-6):
                failed.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    work(0)
    for thread in threads:
        thread.join()
    assert not failed


def test_a_thread_of_short_blocks_leaves_programs_to_others(runs):
    def transform():
        layer = nn.Dense(3, in_units=4)
        layer.initialize()
        for _ in range(2):
            layer(nd.ones((2, 4))).wait_to_read()
        begun.set()
        ended.wait(60)

    begun, ended = threading.Event(), threading.Event()
    notes.end_predictions()
    thread = threading.Thread(target=transform)
    thread.start()
    begun.wait(60)
    net = made()
    for k in range(STEPS):
        net(batch(k)).wait_to_read()
    ended.set()
    thread.join()
    assert len(runs) == STEPS - AT_FIRST


def test_errors_are_told_at_the_call():
    net = made()
    for k in range(STEPS):
        with pytest.raises(GnomonError, match="Convolution"):
            net(nd.ones((2, 4, 4, 4)))
        net(batch(k)).wait_to_read()
