"""Recorded steps that come again are computed as programs, and nobody can tell but by the time.

Random training loops, each with a change in mid-run, give the same numbers as operators one by one;
then what they rely on, one by one.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref

import numpy as np
import pytest
from ndarray import noted, noted_seen

import gnomon as mx
from gnomon import autograd, config, nd
from gnomon.base import GnomonError, ShapeError
from gnomon.executor import recorded_step
from gnomon.ndarray.lazy import notes, recorded
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.record import put

AT_FIRST = 2  # times that a step comes here before it is a program


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(notes, "OFTEN", AT_FIRST)
    begin_anew()


def begin_anew() -> None:
    """Have the thread note again, whatever was in vain before."""
    put(here.own, "noted", None)


@pytest.fixture
def runs(monkeypatch):
    """A list with an item for each step that a program has done."""
    found, run = [], recorded_step.Plan.run

    def counted(self, *given):
        found.append(self)
        return run(self, *given)

    monkeypatch.setattr(recorded_step.Plan, "run", counted)
    return found


def agree(seed: int) -> None:
    begin_anew()
    mx.random.seed(seed)
    found = noted.Loop(seed).run()
    with config.using(programs=False):
        mx.random.seed(seed)
        right = noted.Loop(seed).run()
    if noted_seen.is_exact(right):
        assert not noted_seen.difference(found, right), noted.Loop(seed).change


@pytest.mark.parametrize("seed", range(24))
def test_changes_in_mid_run(seed, monkeypatch):
    monkeypatch.setattr(notes, "OFTEN", 1)
    agree(seed)


@pytest.mark.parametrize("way", [recorded.noted_again, lambda *given: None])
def test_notes_without_native_code(way, monkeypatch):
    monkeypatch.setattr(notes, "OFTEN", 1)
    monkeypatch.setattr(notes, "_again", [way])
    for seed in range(24, 30):
        agree(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(100))
def test_many_changes_in_mid_run(block, monkeypatch):
    monkeypatch.setattr(notes, "OFTEN", 1)
    for seed in range(1000 + block * 100, 1100 + block * 100):
        agree(seed)


def test_loops_are_mostly_programs(runs, monkeypatch):
    monkeypatch.setattr(notes, "OFTEN", 1)
    used = []
    for seed in range(12):
        begin_anew()
        before = len(runs)
        noted.Loop(seed).run()
        used.append(len(runs) > before)
    assert sum(used) > 6


# --- a step -----------------------------------------------------------------------------------


def variables():
    w, b = nd.array([[1, 2, -1], [0, -2, 3]]), nd.array([1, -1])
    w.attach_grad()
    b.attach_grad()
    return w, b


def forward(x, w, b):
    return nd.relu(nd.FullyConnected(x, w, b, num_hidden=2)) * 2


def train(x, w, b):
    with autograd.record():
        loss = forward(x, w, b).sum()
    loss.backward()
    return loss


def test_third_time_is_a_program(runs):
    w, b = variables()
    for k in range(5):
        loss = train(nd.ones((2, 3)) * k, w, b)
        expected = np.maximum(np.array([[2.0, 1.0]]) * k + [[1, -1]], 0) * 2
        assert loss.asscalar() == 2 * expected.sum()
        assert (w.grad.asnumpy() == 4 * k * (expected > 0).T).all()
    assert len(runs) == 5 - AT_FIRST


def test_nothing_is_computed_before_it_is_asked_for():
    w, b = variables()
    with autograd.record():
        y = forward(nd.ones((2, 3)), w, b)
    assert y._pending_in is here.own.noted
    assert y.shape == (2, 2)
    assert y.context == mx.cpu()
    assert y.grad is None
    assert y._pending_in is here.own.noted
    nd.waitall()
    assert y._pending_in is None
    assert y.asnumpy().tolist() == [[6, 0], [6, 0]]


def test_shapes_are_refused_at_the_call():
    w, b = variables()
    for _ in range(4):
        with autograd.record(), pytest.raises(ShapeError, match="FullyConnected"):
            forward(nd.ones((2, 4)), w, b)
        train(nd.ones((2, 3)), w, b)


def test_held_values_outlive_later_steps(runs):
    w, b = variables()
    held = []
    for k in range(6):
        with autograd.record():
            y = forward(nd.ones((2, 3)) * k, w, b)
            loss = y.sum()
        loss.backward()
        held.append(y)
    assert len(runs) == 6 - AT_FIRST
    assert [y.asnumpy()[0, 0] for y in held] == [2 * (2 * k + 1) for k in range(6)]
    with pytest.raises(GnomonError, match="followed already"):
        held[-1].backward()


def test_settings_that_compute_at_once_note_nothing():
    w, b = variables()
    for scope in ({"programs": False}, {"lazy": False}):
        with config.using(**scope), autograd.record():
            assert forward(nd.ones((2, 3)), w, b)._pending_in is not here.own.noted


def test_a_loop_that_never_repeats_stops_noting(runs):
    w, b = variables()
    noted_in = 0
    for k in range(24):
        with autograd.record():
            y = forward(nd.ones((2, 3)), w, b) * (k + 0.5)
            noted_in += y._pending_in is here.own.noted
            loss = y.sum()
        loss.backward()
        assert loss.asscalar() == 2 * 6 * (k + 0.5)
    assert not runs
    assert notes.PATIENCE <= noted_in < 30


def test_reads_in_the_middle_cost_a_record_each(runs):
    w, b = variables()
    for _ in range(4):
        with autograd.record():
            y = forward(nd.ones((2, 3)), w, b)
            assert y.asnumpy()[0, 0] == 6
            loss = y.sum()
        loss.backward()
        assert b.grad.asnumpy().tolist() == [4, 0]
    assert len(runs) == 4 - AT_FIRST  # of the last operator alone


def test_programs_go_with_their_variables(runs):
    w, b = variables()
    for _ in range(4):
        train(nd.ones((2, 3)), w, b)
    plan, leaf = weakref.ref(runs[-1]), weakref.ref(w._tape)
    runs.clear()
    del w, b
    gc.collect()
    assert leaf() is None
    assert plan() is None


def test_what_nobody_asks_for_is_dropped():
    w, b = variables()
    x = nd.ones((2, 3))
    chunk = weakref.ref(x._chunk)
    with autograd.record():
        forward(x, w, b)
    del x
    with autograd.record():
        pass
    assert chunk() is None
    assert not w._chunk.pending_readers


def test_variables_may_move(runs):
    w, b = variables()
    for k in range(12):
        train(nd.ones((2, 3)), w, b)
        w -= w.grad * 0
        b += 0 * b
        if k == 6:
            b = nd.array([2, -2])
            b.attach_grad()
    assert len(runs) >= 6
    assert w.asnumpy().tolist() == [[1, 2, -1], [0, -2, 3]]
    assert b.grad.asnumpy().tolist() == [4, 0]


def test_gradients_that_lie_where_others_do_take_operators(runs):
    w, _ = variables()
    other = nd.array([[1, 1, 1], [2, 2, 2]])
    autograd.mark_variables([w, other], [w.grad, w.grad])
    for _ in range(4):
        with autograd.record():
            loss = (w * other).sum()
        loss.backward()
    assert not runs


def test_results_of_other_records_are_operands(runs):
    """A compiled block comes before, whose gradients are its own affair."""
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.One())
    net.hybridize()
    w, _ = variables()
    for k in range(5):
        with autograd.record():
            loss = (net(nd.ones((2, 3)) * k) * w[:, :2]).sum()
        loss.backward()
        assert net.weight.grad().asnumpy().tolist() == [[k, k, k], [0, 0, 0]]
        assert w.grad.asnumpy().tolist() == [[3 * k, 3 * k, 0]] * 2
    assert len(runs) == 5 - AT_FIRST


def test_updates_follow_in_one_call():
    w, b = variables()
    update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5, rescale_grad=1, wd=0))
    right = w.asnumpy()
    for _ in range(6):
        train(nd.ones((2, 3)), w, b)
        update([0, 1], [w.grad, b.grad], [w, b])
        right = right - 0.5 * np.array([[4.0], [0.0]])
        b[:] = nd.array([20, -20])
        w_now = w.asnumpy()
        assert (w_now == right).all()
        w += 2 * np.array([[1.0], [0.0]])
        right = right + 2 * np.array([[1.0], [0.0]])


def test_another_thread_reads_what_was_noted():
    w, b = variables()
    found = []
    for _ in range(5):
        with autograd.record():
            y = forward(nd.ones((2, 3)), w, b)
            loss = y.sum()
        thread = threading.Thread(target=lambda y=y: found.append(y.asnumpy()[0, 0]))
        thread.start()
        thread.join()
        loss.backward()
        assert b.grad.asnumpy().tolist() == [4, 0]
    assert found == [6] * 5


def test_threads_train_beside_each_other():
    failed = []

    def work(seed):
        try:
            w, b = variables()
            for k in range(20):
                loss = train(nd.ones((2, 3)) * (seed + k), w, b)
                assert loss.asscalar() == 2 * 2 * (2 * (seed + k) + 1 + max(seed + k - 1, 0))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_no_gradient_flows_through_blocked_operands(runs):
    """What was followed before is read behind a `BlockGrad`: there is nothing to follow again."""
    w, b = variables()
    for _ in range(5):
        h = train(nd.ones((2, 3)), w, b)
        with autograd.record():
            loss = (nd.BlockGrad(h) * b).sum()
        loss.backward()
        assert b.grad.asnumpy().tolist() == [12, 12]
    assert len(runs) == 2 * (5 - AT_FIRST)


def test_values_that_were_followed_are_constants():
    w, b = variables()
    for _ in range(5):
        with autograd.record():
            y = forward(nd.ones((2, 3)), w, b)
            z = y.sum(axis=1)
            loss = z.sum()
        loss.backward()
        with autograd.record():
            again = y.sum() + z.sum()
        with pytest.raises(GnomonError, match="was not computed from a variable"):
            again.backward()


def test_symbols_of_what_a_program_followed_are_refused(runs):
    w, b = variables()
    for _ in range(4):
        loss = train(nd.ones((2, 3)), w, b)
    assert runs
    with pytest.raises(GnomonError, match="before backward"):
        autograd.get_symbol(loss)


def test_threads_that_note_what_the_other_noted_do_not_wait_for_each_other():
    noted_by, meet, done = [None, None], threading.Barrier(2, timeout=60), []

    def work(k):
        w, _ = variables()
        for _ in range(60):
            with autograd.record():
                noted_by[k] = w * 2
                meet.wait()
                nd.dot(w, noted_by[1 - k], transpose_b=True)
                meet.wait()
        done.append(k)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert len(done) == 2


# --- states and random numbers ------------------------------------------------------------------


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
        assert (mean.asnumpy() == np.array([2, 1]) * (1 - 0.5 ** (k + 1))).all()
        loss.backward()
        assert (mean.asnumpy() == np.array([2, 1]) * (1 - 0.5 ** (k + 1))).all()


def test_averages_that_others_look_at_are_changed_at_once():
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    view = mean[1:]
    with autograd.record():
        h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
        h = nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
        assert h._pending_in is not here.own.noted
        assert view.asscalar() == 0.5


def test_averages_change_where_results_are_dropped():
    w, _ = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    for _ in range(3):
        with autograd.record():
            nd.BatchNorm(w, nd.ones((3,)), nd.zeros((3,)), nd.zeros((3,)), nd.ones((3,)))
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            nd.BatchNorm(h, nd.ones((2,)), nd.zeros((2,)), mean, variance, momentum=0.5)
    assert (mean.asnumpy() == np.array([2, 1]) * (1 - 0.5**3)).all()


def test_variables_beside_the_heads_keep_their_gradients(runs):
    w, b = variables()
    mean, variance = nd.zeros((2,)), nd.ones((2,))
    for k in range(5):
        b.grad[:] = 7
        with autograd.record():
            h = nd.FullyConnected(nd.ones((2, 3)), w, no_bias=True, num_hidden=2)
            nd.BatchNorm(h + b, b, b, mean, variance, momentum=0.5)
            loss = h.sum()
        loss.backward()
        assert b.grad.asnumpy().tolist() == [7, 7]
        assert (mean.asnumpy() == np.array([3, 0]) * (1 - 0.5 ** (k + 1))).all()
    assert len(runs) == 5 - AT_FIRST


def test_a_value_held_beside_the_heads_stops_the_noting(runs):
    w, b = variables()
    noted_in = 0
    for _ in range(30):
        with autograd.record():
            h = forward(nd.ones((2, 3)), w, b)
            noted_in += h._pending_in is here.own.noted
            beside, loss = h * 3, h.sum()
        loss.backward()
        assert beside.asnumpy()[0, 0] == 18
    assert not runs
    assert noted_in < 20


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
