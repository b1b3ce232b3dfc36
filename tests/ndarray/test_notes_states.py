"""Recorded steps with operators that change states and draw random numbers; children of forks."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from ndarray.noted_steps import AT_FIRST, begin_soon, counted_runs, forward, variables

import gnomon as mx
from gnomon import autograd, config, nd
from gnomon.base import GnomonError
from gnomon.executor.run import Run
from gnomon.ndarray.lazy.fusion_group import here


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    begin_soon(monkeypatch)


@pytest.fixture
def runs(monkeypatch):
    return counted_runs(monkeypatch)


def normed_step(x, w, mean, variance):
    """BatchNorm, Dropout and a layer without bias."""
    with autograd.record():
        h = nd.FullyConnected(x, w, None, no_bias=True, num_hidden=2)
        h = nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
        loss = nd.Dropout(h, p=0.5).sum()
    loss.backward()
    return loss


def normed_steps(look):
    """Losses, gradients and what `look` sees of the averages after each step."""
    mx.random.seed(11)
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    seen = []
    for k in range(7):
        x = nd.array([[1, 2, 3], [k, 0, -k], [2, k, 1], [1, 1, 2 * k]])
        seen += [normed_step(x, w, mean, variance).asnumpy(), w.grad.asnumpy()]
        look(seen, mean)
        w -= 0.125 * w.grad
    return [*seen, mean.asnumpy(), variance.asnumpy(), nd.random.uniform(shape=(3,)).asnumpy()]


@pytest.mark.parametrize("looks", [False, True])
def test_states_change_once_and_draws_are_the_same(runs, looks):
    def look(seen, mean):
        if looks:
            seen.append(mean.asnumpy())

    found = normed_steps(look)
    assert len(runs) == 7 - AT_FIRST
    with config.using(programs=False):
        right = normed_steps(look)
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_averages_are_read_before_backward():
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    for k in range(4):
        with autograd.record():
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            h = nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
            loss = h.sum()
        assert h._pending_in is here.own.noted
        assert (mean.asnumpy() == np.array([2, 1]) * (1 - 0.5**k)).all()
        loss.backward()
        assert (mean.asnumpy() == np.array([2, 1]) * (1 - 0.5 ** (k + 1))).all()


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("where", ["_whole", "_pass"])
def test_a_handler_reads_averages_while_a_step_is_compiled(reads, where, monkeypatch):
    """Whether the loss is read before `backward` or not; all is as without the handler."""
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    usual, seen, came, read = getattr(Run, where), [], [], 0

    def interrupted(run, *given):
        if len(came) == len(seen):  # what it has compiled in turn has none
            came.append(run)
            seen.append(mean.asnumpy()[0])
        return usual(run, *given)

    monkeypatch.setattr(Run, where, interrupted)
    for k in range(8):
        with autograd.record():
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            h = nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
            loss = h.sum()
        if reads:
            loss.asscalar()
        loss.backward()
        right = 2 * (1 - 0.5 ** (k + 1))
        assert mean.asnumpy()[0] == right
        assert w.grad.asnumpy().tolist() == [[0] * 3] * 2
        before = 2 * (1 - 0.5**k)
        assert all(x in (before, right) for x in seen[-1:] if len(seen) > read)
        read = len(seen)
    assert read


def test_averages_that_others_look_at_are_changed_where_they_lie(runs):
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    view = mean[1:]
    for k in range(5):
        with autograd.record():
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            h = nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
        seen = view * 2  # perhaps not computed yet
        h.backward()
        assert seen.asscalar() == 2 * (1 - 0.5**k)
        assert view.asscalar() == 1 - 0.5 ** (k + 1)
    assert len(runs) == 5 - AT_FIRST


def test_averages_that_other_averages_look_at_are_changed_one_by_one(runs):
    w, _ = variables()
    both = nd.zeros((3,))
    for _ in range(5):
        both[:] = 0
        with autograd.record():
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            h = nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), both[:2], both[1:], momentum=0.5)
        h.backward()
        assert both[0].asscalar() == 1
    assert not runs


def test_averages_that_are_others_each_time_change(runs):
    w, _ = variables()
    for k in range(8):
        mean, variance = nd.full((2,), k), nd.ones((2,))
        normed_step(nd.ones((4, 3)), w, mean, variance)
        assert (mean.asnumpy() == (np.array([2, 1]) + k) / 2).all()
        assert (variance.asnumpy() == 0.5).all()


def test_averages_read_in_prediction_mode_before_they_change(runs):
    """What was noted of a prediction is computed before a program writes what it reads."""
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    x = nd.ones((1, 2))
    for k in range(5):
        seen = nd.BatchNorm(x, nd.ones((2,)), nd.zeros((2,)), mean, variance, eps=0)
        want = x.asnumpy()[0, 0] - mean.asnumpy()[0]
        normed_step(nd.ones((4, 3)), w, mean, variance)
        np.testing.assert_allclose(seen.asnumpy()[0, 0], want * 0.5 ** (-k / 2), rtol=1e-3)
    assert len(runs) == 5 - AT_FIRST


def test_averages_stay_where_results_are_dropped():
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    for _ in range(3):
        with autograd.record():
            nd.BatchNorm(w, nd.ones((3,)), nd.zeros((3,)), nd.zeros((3,)), nd.ones((3,)))
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
    assert not mean.asnumpy().any()


def test_variables_and_averages_beside_the_heads_stay_as_they_are(runs):
    w, b = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    for _ in range(5):
        b.grad[:] = 7
        with autograd.record():
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            nd.BatchNorm(h + b, b, b, mean, variance, momentum=0.5)
            loss = h.sum()
        loss.backward()
        assert b.grad.asnumpy().tolist() == [7, 7]
        assert not mean.asnumpy().any()
    assert len(runs) == 5 - AT_FIRST


def test_a_value_of_other_operators_stops_the_noting(runs):
    w, b = variables()
    noted_in = 0
    for _ in range(30):
        with autograd.record():
            h = forward(nd.ones((2, 3)), w, b)
            noted_in += h._pending_in is here.own.noted
            beside, loss = b * 3, h.sum()
        loss.backward()
        beside.backward()
        assert b.grad.asnumpy()[0] == 3
    assert not runs
    assert noted_in < 20


def test_values_held_beside_the_heads(runs):
    w, b = variables()
    for _ in range(5):
        with autograd.record():
            h = forward(nd.ones((2, 3)), w, b)
            beside, chosen, loss = h * 3, h.argmax(axis=1), h.sum()
        loss.backward()
        assert beside.asnumpy()[0, 0] == 18
        assert not chosen.asnumpy().any()
        with autograd.record():
            other = (b * chosen[:1].detach() + b).sum()
        other.backward()
        assert b.grad.asnumpy().tolist() == [1, 1]
        with autograd.record():
            others = (beside * b).sum(), (chosen * b).sum()
        for head in (*others, beside, chosen):
            with pytest.raises(GnomonError, match="followed already"):
                head.backward()
            assert b.grad.asnumpy().tolist() == [1, 1]
    assert len(runs) > 5 - AT_FIRST


@pytest.mark.parametrize("turn", ["loss first", "value first"])
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("value", [nd.BlockGrad, nd.sign, nd.zeros_like, lambda x: x > 1])
def test_gradients_of_0_behind_the_loss_are_refused_where_others_are(value, apart, turn, runs):
    """As MXNet: what counts is whether operators that both depend on were followed."""
    w, _ = variables()
    for _ in range(6):
        with autograd.record():
            h = w * w
            loss, beside = (h * h).sum(), value(w if apart else h)
        first, second = (loss, beside) if turn == "loss first" else (beside, loss)
        first.backward()
        before = w.grad.asnumpy()
        assert before.any() == (first is loss)
        if apart:
            second.backward()
            assert w.grad.asnumpy().any() == (second is loss)
        else:
            with pytest.raises(GnomonError, match="followed already"):
                second.backward()
            assert (w.grad.asnumpy() == before).all()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_note_and_read_what_was_noted():
    w, b = variables()
    held, ready, done = [], threading.Event(), threading.Event()

    def elsewhere():
        v, c = variables()
        with autograd.record():
            held.append(forward(nd.ones((2, 3)), v, c))
        ready.set()
        done.wait(60)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    ready.wait(60)
    pid = os.fork()
    if not pid:
        with autograd.record():
            y = forward(nd.ones((2, 3)), w, b)
            is_noted = y._pending_in is here.own.noted
        right = is_noted and held[0].asnumpy()[0, 0] == y.asnumpy()[0, 0] == 6
        os._exit(0 if right else 1)
    done.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("heads", ["one twice", "equal ones", "equal losses"])
def test_each_of_equal_heads_counts(heads, runs):
    w, _ = variables()
    for _ in range(5):
        with autograd.record():
            first = w * w
            second = first if heads == "one twice" else w * w
            if heads == "equal losses":
                first, second = nd.MakeLoss(first), nd.MakeLoss(second)
        autograd.backward([first, second])
        assert (w.grad.asnumpy() == 4 * w.asnumpy()).all()
    assert len(runs) == 5 - AT_FIRST
