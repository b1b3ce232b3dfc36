"""Values that are read between `record` and `backward`: two calls of one program.

What came often is computed as before, but for the time; whatever else happens between a read and
the gradients has the operators applied one by one.
"""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from ndarray.noted_steps import begin_soon, counted, forward, variables

import gnomon as mx
from gnomon import autograd, config, nd
from gnomon.base import GnomonError
from gnomon.executor.recorded_step import Plan
from gnomon.ndarray.lazy.forwarded import PATIENCE, Forwarded

STEPS = 7
AT_FIRST = 3  # reads before a program: two to come often, one to see what is asked for


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    begin_soon(monkeypatch)


@pytest.fixture
def backs(monkeypatch):
    """A list that gets an item for each backward pass of a program of its own."""
    return counted(monkeypatch, Plan, "backward")


@pytest.fixture
def opened(monkeypatch):
    """A list that gets an item for each node that is opened."""
    return counted(monkeypatch, Forwarded, "_applied")


def steps(step, count=STEPS):
    """What a step gives each time, with programs and without."""
    found = []
    for programs in (True, False):
        with config.using(programs=programs):
            mx.random.seed(7)
            w, b = variables()
            for k in range(count):
                found += [np.array(x) for x in step(k, w, b)]
                found += [w.grad.asnumpy(), b.grad.asnumpy()]
                w -= nd.clip(w.grad, -1, 1)
    half = len(found) // 2
    for a, right in zip(found[:half], found[half:], strict=True):
        np.testing.assert_allclose(a, right, rtol=1e-5, atol=1e-6)


def read_loss(k, w, b):
    with autograd.record():
        loss = forward(nd.ones((2, 3)) * k, w, b).sum()
    yield loss.asnumpy()
    loss.backward()


def read_mean(k, w, b):
    with autograd.record():
        loss = forward(nd.ones((2, 3)) * k, w, b)
    yield loss.mean().asscalar()
    loss.backward()
    yield loss.asnumpy()


def read_output(k, w, b):
    metric = mx.metric.Accuracy()
    with autograd.record():
        out = forward(nd.ones((2, 3)) * k, w, b)
        loss = (out * out).sum()
    metric.update([nd.array([0, 1])], [out])
    yield metric.get()[1]
    loss.backward()


def read_inside(k, w, b):
    with autograd.record():
        out = forward(nd.ones((2, 3)) * k, w, b)
        yield out.sum().asscalar()
        loss = (out * (k + 1)).sum()
    loss.backward()
    yield loss.asscalar()


def read_beside(k, w, b):
    with autograd.record():
        out = forward(nd.ones((2, 3)) * k, w, b)
        right = (out.argmax(axis=1) == 0).mean()
        loss = out.sum()
        yield right.asscalar()
    loss.backward()


def several_losses(k, w, b):
    with autograd.record():
        out = forward(nd.ones((2, 3)) * k, w, b)
        first, second = out.sum(), (out * out).mean()
    yield first.asscalar()
    autograd.backward([first, second])


def given_gradients(k, w, b):
    with autograd.record():
        out = forward(nd.ones((2, 3)) * k, w, b)
    yield out.asnumpy()
    out.backward(nd.array([[k, 2], [3, 4]]))


def dropped_out(k, w, b):
    with autograd.record():
        loss = nd.Dropout(forward(nd.ones((2, 3)) * k, w, b), p=0.5).sum()
    yield loss.asscalar()
    loss.backward()


@pytest.mark.parametrize(
    "step",
    [
        read_loss, read_mean, read_output, read_inside, read_beside, several_losses,
        given_gradients, dropped_out,
    ],
)  # fmt: skip
def test_reads_before_backward_are_programs(step, backs, opened):
    steps(step)
    assert len(backs) == STEPS - AT_FIRST
    assert not opened


def test_every_other_step_is_read(backs):
    def step(k, w, b):
        with autograd.record():
            loss = forward(nd.ones((2, 3)) * k, w, b).sum()
        if k % 2:
            yield loss.asscalar()
        loss.backward()

    steps(step, 12)
    assert len(backs) == 6 - AT_FIRST


def write_variable(w, b, x, loss):
    b += 1
    loss.backward()
    b -= 1


def write_input(w, b, x, loss):
    x[:] = 3
    loss.backward()


def write_value(w, b, x, loss):
    loss[:] = 3
    loss.backward()


def retain(w, b, x, loss):
    loss.backward(retain_graph=True)
    w.grad[:] = 0
    loss.backward()


def ask_for_gradients(w, b, x, loss):
    (found,) = autograd.grad(loss, [w])
    w.grad[:] = found


def differentiate_twice(w, b, x, loss):
    with autograd.record():
        (found,) = autograd.grad(loss, [w], create_graph=True)
        (found * found).sum().backward()


def give_a_gradient(w, b, x, loss):
    loss.backward(nd.ones(loss.shape) * 3)


def variables_again(w, b, x, loss):
    with autograd.record():
        other = (loss * w[0, 0] + w.sum()).sum()
    other.backward()


def from_a_thread(w, b, x, loss):
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()


def other_gradient_arrays(w, b, x, loss):
    w.grad[:] = 0
    w.attach_grad()
    loss.backward()


def ask_for_the_symbol(w, b, x, loss):
    assert "FullyConnected" in autograd.get_symbol(loss).tojson()
    loss.backward()


def ask_again(w, b, x, loss):
    loss.backward()
    with pytest.raises(GnomonError, match="followed already"):
        loss.backward()


def read_again(w, b, x, loss):
    """The program runs once more before the gradients of its last run are asked for."""
    with autograd.record():
        other = (forward(x * 2, w, b) ** 2).sum(axis=1)
    other.asnumpy()
    loss.backward()
    other.backward()


CHANGES = [
    write_variable, write_input, write_value, retain, ask_for_gradients, differentiate_twice,
    give_a_gradient, variables_again, from_a_thread, other_gradient_arrays,
    ask_for_the_symbol, ask_again, read_again,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_comes_between_a_read_and_backward(change):
    def step(k, w, b):
        x = nd.ones((2, 3)) * k
        with autograd.record():
            loss = (forward(x, w, b) ** 2).sum(axis=1)
        yield loss.asnumpy()
        if k in (5, 6, 8):
            change(w, b, x, loss)
        else:
            loss.backward()
        yield loss.asnumpy()

    steps(step, 11)


def test_no_more_programs_are_tried_where_nodes_are_opened_each_time(backs, opened):
    def step(k, w, b):
        with autograd.record():
            loss = forward(nd.ones((2, 3)) * k, w, b).sum()
        yield loss.asscalar()
        b += 0
        loss.backward()

    steps(step, PATIENCE + 12)
    assert not backs
    assert len(opened) == PATIENCE + 1


def test_averages_change_once_though_nodes_are_opened(opened):
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    for k in range(8):
        x = nd.ones((2, 3))
        with autograd.record():
            h = nd.FullyConnected(x, w, no_bias=True, num_hidden=2)
            h = nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
            loss = h.sum()
        assert abs(loss.asscalar()) < 1e-3
        assert (mean.asnumpy() == np.array([2, 1]) * (1 - 0.5**k)).all()
        if k > 5:
            x[:] = 4
        loss.backward()
        assert (mean.asnumpy() == np.array([2, 1]) * (1 - 0.5 ** (k + 1))).all()
    assert len(opened) == 2


def normalized(x, weight, mean):
    h = nd.FullyConnected(x, weight, no_bias=True, num_hidden=2)
    return nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, nd.ones((2,)), momentum=0.5)


@pytest.mark.parametrize("reads", [(), (0,), (0, 2), (0, 1), (2,)])
@pytest.mark.parametrize("stopped", [False, True])
def test_averages_change_behind_a_stopped_gradient(reads, stopped):
    """One of two layers gets no gradient, or neither does."""
    means = [nd.zeros((2,)), nd.zeros((2,))]
    weights = [nd.ones((2, 3)), nd.ones((2, 3))]
    for w in weights:
        w.attach_grad()
    right = 0
    for k in range(STEPS):
        x = nd.ones((2, 3)) * k
        with autograd.record():
            h, g = map(normalized, (x, x), weights, means)
            read = [v.asnumpy() for n, v in enumerate((h, g)) if n in reads]
            loss = nd.BlockGrad(h) * 2 + (nd.BlockGrad(g) if stopped else g)
            read += [loss.asnumpy()] if 2 in reads else []
        loss.backward()
        assert len(read) == len(reads)
        right = (right + 3 * k) / 2
        for mean in means:
            np.testing.assert_allclose(mean.asnumpy(), [right] * 2, rtol=1e-6)


def test_nodes_that_are_dropped_keep_nothing():
    w, b = variables()
    for _ in range(STEPS):
        x = nd.ones((2, 3))
        with autograd.record():
            loss = forward(x, w, b).sum()
        loss.asscalar()
        loss.backward()
    with autograd.record():
        loss = forward(x, w, b).sum()
    loss.asscalar()
    node, read = weakref.ref(loss._tape.node), weakref.ref(x)
    assert node().is_closed
    assert w._chunk.pending_readers
    del loss, x
    gc.collect()
    assert node() is None
    assert read() is None
    assert not w._chunk.pending_readers


@pytest.mark.parametrize("written", ["operand", "variable", "value"])
def test_another_thread_writes_while_gradients_are_on_their_way(written, backs, opened):
    """It does after the walk has seen that a program gives the gradients, before that does."""

    def write(*arrays):
        for x in arrays:
            x[:] = 3

    class Waits(autograd.Function):
        then = None

        def forward(self, y):
            return y * 2

        def backward(self, dy):
            if Waits.then is not None:
                thread = threading.Thread(target=write, args=(Waits.then,))
                thread.start()
                thread.join()
            return dy * 2

    def step(k, w, b):
        x, v = nd.ones((2, 3)) * k, nd.ones((2, 2))
        v.attach_grad()
        with autograd.record():
            h = forward(x, w, b)
            seen = h * w[:, :2]
        yield seen.asnumpy()
        with autograd.record():
            loss = (Waits()(seen) * v).sum()
        if k in (6, 8):
            Waits.then = {"operand": x, "variable": b, "value": seen}[written]
        loss.backward()
        Waits.then = None
        yield v.grad.asnumpy()
        yield loss.asnumpy()

    steps(step, 10)
    assert backs
    assert len(opened) == 2


class Deep(mx.gluon.Block):
    """Enough operators for a prediction to be a program."""

    def __init__(self):
        super().__init__()
        self.weight = self.params.get("weight", shape=(3, 2), init="ones")

    def forward(self, x):
        y = nd.dot(x, self.weight.data())
        for _ in range(4):
            y = nd.tanh(y * 0.5) + 0.1
        return y


def test_predictions_of_other_sizes_leave_alone_what_is_asked_of_recorded_reads(backs, opened):
    """Both note the same operators, and read the same of them."""

    def found():
        net, seen = Deep(), []
        net.initialize()
        for k in range(2 * STEPS):
            x = nd.ones((4, 3)) * k
            with autograd.record():
                y = net(x)
            seen.append(y.asnumpy())
            y.backward()
            seen += [net.weight.grad().asnumpy(), net(nd.ones((5 + k, 3))).asnumpy()]
        return seen

    seen = found()
    assert len(backs) > STEPS
    assert not opened
    with config.using(programs=False):
        right = found()
    for a, b in zip(seen, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
