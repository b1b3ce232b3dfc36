"""Recorded steps that come again are computed as programs, and nobody can tell but by the time.

Random training loops, each with a change in mid-run, give the same numbers as operators one by one;
then what they rely on, one by one.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from ndarray import noted, noted_seen
from ndarray.noted_steps import (
    AT_FIRST,
    begin_anew,
    begin_soon,
    counted,
    counted_runs,
    forward,
    variables,
)

import gnomon as mx
from gnomon import autograd, config, nd
from gnomon.base import GnomonError, ShapeError
from gnomon.executor.recorded_step import Plan
from gnomon.ndarray.lazy import notes, recorded
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ops import registry
from gnomon.ops.binary import FORMS
from gnomon.runtime.statements.fields import readable


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    begin_soon(monkeypatch)


@pytest.fixture
def at_once(monkeypatch):
    """Steps are programs, and their numbers operands, as soon as they come again."""
    monkeypatch.setattr(notes, "OFTEN", 1)
    monkeypatch.setattr(notes, "MOST_NUMBERS", 1)


@pytest.fixture
def runs(monkeypatch):
    return counted_runs(monkeypatch)


def agree(seed: int) -> None:
    loop = noted.Loop.drawn(seed)
    begin_anew()
    mx.random.seed(seed)
    found = loop.run()
    with config.using(programs=False):
        mx.random.seed(seed)
        right = loop.run()
    if noted_seen.is_exact(right):
        assert not noted_seen.difference(found, right), (seed, loop.turns)


@pytest.mark.parametrize("seed", range(24))
def test_changes_in_mid_run(seed, at_once):
    agree(seed)


@pytest.mark.parametrize("way", [recorded.native_note, lambda *given: None])
def test_notes_without_native_code(way, monkeypatch, at_once):
    recorded.serve()  # once, so that what is set here stays
    for name in ("numbered", "let_go", "lie_there"):
        monkeypatch.setattr(recorded.ways, name, getattr(recorded, name))
    monkeypatch.setattr(recorded.ways, "note", way)
    for seed in range(24, 30):
        agree(seed)


def test_loops_are_mostly_programs(runs, monkeypatch):
    monkeypatch.setattr(notes, "OFTEN", 1)
    used, backs = [], counted(monkeypatch, Plan, "backward")
    for seed in range(12):
        begin_anew()
        before = len(runs) + len(backs)
        noted.Loop.drawn(seed).run()
        used.append(len(runs) + len(backs) > before)
    assert sum(used) > 6


# --- a step -----------------------------------------------------------------------------------


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


def test_a_number_that_changes_each_step(runs, monkeypatch):
    monkeypatch.setattr(notes, "MOST_NUMBERS", 2)
    w, _ = variables()
    for k in range(12):
        with autograd.record():
            y = (nd.ones((2, 3)) * w) * (k + 1) + k
            loss = ((7 - k) - y).sum()
        loss.backward()
        assert (w.grad.asnumpy() == -(k + 1)).all()
        assert y.asnumpy().tolist() == (w.asnumpy() * (k + 1) + k).tolist()
        assert loss.asscalar() == (7 - k - y.asnumpy()).sum()
    assert len(runs) == 12 - 3 * 2 - AT_FIRST  # each number in turn is found to change


def test_native_code_notes_operators_whose_numbers_change(monkeypatch):
    monkeypatch.setattr(notes, "MOST_NUMBERS", 1)
    calls = counted(monkeypatch, notes.Record, "note")
    w, _ = variables()
    for k in range(8):
        calls.clear()
        with autograd.record():
            loss = nd.clip(w * (k + 2), -1, k + 3).sum()
        loss.backward()
        inside = (w.asnumpy() * (k + 2) >= -1) & (w.asnumpy() * (k + 2) <= k + 3)
        assert (w.grad.asnumpy() == (k + 2) * inside).all()
    assert bool(calls) != readable()


@pytest.mark.parametrize("name", ["power", "mod", "greater", "hypot", "logical_and"])
def test_numbers_of_all_operators_may_change(name, runs, monkeypatch):
    monkeypatch.setattr(notes, "MOST_NUMBERS", 1)
    operator = registry.find(FORMS[name].scalar)

    def steps():
        w = nd.array([[0.5, 2, 3], [1.5, 0.25, 4]])
        w.attach_grad()
        for k in range(7):
            with autograd.record():
                y = nd.invoke(operator.parse({"scalar": k / 2 + 1}), (w,))
                loss = (y * w).sum()
            loss.backward()
            yield np.append(w.grad.asnumpy(), loss.asscalar())

    found = list(steps())
    with config.using(programs=False):
        np.testing.assert_allclose(found, list(steps()), rtol=1e-6)
    assert len(runs) == 7 - 1 - AT_FIRST


CHANGING = {
    "clip": lambda x, k: nd.clip(x, -k / 4, k / 2 + 0.25),
    "Dropout": lambda x, k: nd.Dropout(x, p=(k + 1) / 8),
    "always": lambda x, k: nd.Dropout(x, p=k / 8, mode="always", axes=(0,)),
    "LeakyReLU": lambda x, k: nd.LeakyReLU(x - 2, slope=0.25 + k),
    "elu": lambda x, k: nd.LeakyReLU(x - 2, act_type="elu", slope=0.25 + k),
    "softmax": lambda x, k: nd.softmax(x, temperature=0.5 + k, axis=0),
    "log_softmax": lambda x, k: nd.log_softmax(x, temperature=0.5 + k),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CHANGING)
def test_numbers_of_operators_may_change(name, dtype, runs, monkeypatch):
    monkeypatch.setattr(notes, "MOST_NUMBERS", 1)

    def steps(train):
        mx.random.seed(3)
        w = nd.array([[0.5, 2, 3], [1.5, 0.25, 4]], dtype=dtype)
        w.attach_grad()
        for k in range(1, 8):
            with autograd.record(train_mode=train):
                y = CHANGING[name](w, k)
                loss = (y * w).sum()
            loss.backward()
            yield np.concatenate([w.grad.asnumpy().ravel(), y.asnumpy().ravel(), [loss.asscalar()]])

    for train in (True, False):
        runs.clear()
        found = list(steps(train))
        with config.using(programs=False):
            right = list(steps(train))
        np.testing.assert_allclose(found, right, rtol=2e-6 if dtype == "float32" else 1e-12)
        if train or name != "Dropout":  # which does nothing in prediction, whatever its rate
            assert len(runs) == 7 - 1 - AT_FIRST


def test_operators_are_those_that_were_called_whatever_number_changes(monkeypatch):
    monkeypatch.setattr(notes, "MOST_NUMBERS", 1)
    w, _ = variables()
    for k in range(4):
        with autograd.record():
            y = w * (k + 2)
        symbol = autograd.get_symbol(y)
    (node,) = [n for n in symbol._graph.topo if n.op is not None]
    assert (node.op.name, node.op.scalar) == ("_mul_scalar", 5)
    assert y.asnumpy().tolist() == (w.asnumpy() * 5).tolist()


def test_numbers_that_no_operand_holds_are_noted_as_they_are(runs, monkeypatch):
    monkeypatch.setattr(notes, "MOST_NUMBERS", 1)
    w, _ = variables()
    for k in range(6):
        with autograd.record():
            whole = nd.BlockGrad(w).astype("int32") * k
            loss = nd.minimum(w, 1e39 + k * 1e38).sum() + whole.astype("float32").sum()
        loss.backward()
        assert (w.grad.asnumpy() == 1).all()
    assert not runs


def test_records_that_are_not_followed_do_not_grow():
    w, b = variables()
    held = []
    for _ in range(3 * notes.SCOPES):
        with autograd.record():
            held.append(forward(nd.ones((2, 3)), w, b))
        assert len(here.own.noted.results) <= 3 * notes.SCOPES
    autograd.backward(held)
    assert (b.grad.asnumpy() == [12 * notes.SCOPES, 0]).all()


@pytest.mark.parametrize("write", ["fill", "copy", "update"])
def test_what_is_noted_and_element_wise_is_computed_before_its_operand_is_written(write):
    w, _ = variables()
    for _ in range(3):
        x = nd.ones((2, 3)) * 5
        x.wait_to_read()
        with autograd.record():
            y = nd.maximum(x, w)
        if write == "fill":
            x[:] = 2
        elif write == "copy":
            x[:] = nd.zeros((2, 3)) + 1
        else:
            nd.sgd_update(x, nd.ones((2, 3)), lr=1, out=x)
        assert y.asnumpy().tolist() == [[5] * 3] * 2


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
            y = nd.repeat(forward(nd.ones((2, 3)), w, b), k + 1)
            noted_in += y._pending_in is here.own.noted
            loss = y.sum()
        loss.backward()
        assert loss.asscalar() == 12 * (k + 1)
    assert not runs
    assert recorded.PATIENCE <= noted_in < 30


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
