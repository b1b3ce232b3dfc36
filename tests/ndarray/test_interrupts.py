"""Ctrl-C at random moments: each statement is done wholly or not at all, and all stays readable."""

from __future__ import annotations

import random
import signal
import sys
import time

import numpy as np
import pytest
from golden.training import perceptron

import gnomon as mx
from gnomon import engine
from gnomon.engine.completion import Completion
from gnomon.executor.inputs import Input
from gnomon.gluon.block.program import Lease
from gnomon.module import Module
from gnomon.ndarray.lazy import fused
from gnomon.ndarray.lazy.forwarded import Forwarded
from gnomon.ndarray.lazy.fusion_group import FusionGroup
from gnomon.runtime.compiler.jit import Module as Code
from gnomon.runtime.devices.pool import Storage
from gnomon.runtime.libraries.dnn.library import Owned
from gnomon.shadow.foreign import Taken

# a finaliser that is interrupted can only report it
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ENGINES = {"threaded": engine.ThreadedEnginePerDevice, "naive": engine.NaiveEngine}


@pytest.mark.parametrize(
    "kind",
    [Lease, Forwarded, Code, Storage, Owned, Taken, Completion, Input],
    ids=lambda k: k.__name__,
)
def test_what_was_interrupted_before_it_was_made_goes_silently(kind, monkeypatch):
    failed = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    made = kind.__new__(kind)
    del made
    assert not failed


@pytest.fixture
def interrupted():
    """Gives `f(work, longest)`: run `work()` until a signal's handler raises in its midst."""
    armed, chance = False, random.Random(5)

    def interrupt(*_):
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    def repeat(work):  # not a loop within `try`: see `gnomon.ground.lock`
        while armed:  # a finaliser may swallow the exception
            work()

    def until(work, longest):
        nonlocal armed
        delay = chance.uniform(1e-4, longest)
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, delay, 0.01)
            repeat(work)
        except KeyboardInterrupt:
            pass
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    before = signal.signal(signal.SIGALRM, interrupt)
    yield until
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=ENGINES)
def own_engine(request):
    before = engine.get()
    engine.use(ENGINES[request.param]())
    yield
    engine.get().wait_for_all()
    engine.use(before)


def rounds(seconds, most=300):
    end = time.monotonic() + seconds
    for i in range(most):
        if i > 10 and time.monotonic() > end:
            return
        yield i


@pytest.mark.parametrize("size", [10, 30_000])  # under the engine's lock, and not
@pytest.mark.native
def test_a_statement_is_done_or_not(interrupted, own_engine, size):
    for _ in rounds(1.5):
        a, made = mx.nd.zeros((size,)), 0

        def work():
            nonlocal made
            a.__iadd__(1)  # noqa: B023
            made += 1
            a.wait_to_read()  # noqa: B023

        interrupted(work, 0.004)
        values = a.asnumpy()
        assert (values == values[0]).all()
        assert values[0] - made in (0, 1)


@pytest.mark.native
def test_an_update_is_done_or_not(interrupted, own_engine):
    for _ in rounds(1.5):
        weight, grad = mx.nd.zeros((40,)), mx.nd.full((40,), -1.0)
        momentum = mx.nd.zeros((40,))

        def work():
            mx.nd.sgd_update(weight, grad, out=weight, lr=1.0)  # noqa: B023
            given = weight, grad, momentum  # noqa: B023
            mx.nd.sgd_mom_update(*given, out=weight, lr=0.0, momentum=1.0)  # noqa: B023
            weight[:5] = np.ones(5)  # noqa: B023

        interrupted(work, 0.004)
        values = weight.asnumpy()
        assert len(np.unique(values[5:])) == 1
        assert (momentum.asnumpy() == momentum.asnumpy()[0]).all()


@pytest.mark.native
def test_training_goes_on_after_interrupts(interrupted, tmp_path):
    points = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    data = mx.io.NDArrayIter(points, points[:, :3].argmax(axis=1).astype(np.float32), 5)
    for i in rounds(4, 60):
        if i % 20 == 0:
            module = Module(perceptron(mx.sym))
        optimizer = ("sgd", "adam")[i % 2]

        def fit():
            data.reset()
            module.fit(data, num_epoch=1, optimizer=optimizer, force_init=False)  # noqa: B023

        interrupted(fit, 0.05)
        fit()
        data.reset()
        assert 0 <= dict(module.score(data, "acc"))["accuracy"] <= 1
        module.save_checkpoint(str(tmp_path / "net"), 1)
        args, _ = module.get_params()
        assert all(np.isfinite(x.asnumpy()).all() for x in args.values())
    mx.nd.waitall()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_a_resumable_function_comes_to_its_end(own_engine, kind):
    var, calls = engine.get().new_variable(), []

    def once_interrupted(run_ctx):
        calls.append(1)
        if len(calls) == 1:
            raise kind

    with pytest.raises(kind):
        engine.get().push_inline(engine.Repeatable(once_interrupted), None, (), [var])
    engine.get().wait_for_var(var)
    assert len(calls) == 2


def test_an_error_of_its_own_stays(own_engine):
    var = engine.get().new_variable()

    def fail(run_ctx):
        raise ValueError("no such page")

    def push():
        engine.get().push_inline(engine.Repeatable(fail), None, (), [var], name="fetch")
        engine.get().wait_for_var(var)

    with pytest.raises((ValueError, engine.EngineError), match="no such page"):
        push()
    with pytest.raises(engine.EngineError, match="'fetch' failed: ValueError"):
        engine.get().wait_for_var(var)


def test_what_computes_amidst_a_lone_result_leaves_it_alone(monkeypatch):
    """As a signal's handler may, that waits for all: the group must not be gone afterwards."""
    x, calls = mx.nd.ones((2000,)), []
    for _ in range(9):
        (x * 3)._chunk  # asked for from Python, until there is a fast path

    def interrupted(*given):
        calls.append(given)
        mx.nd.waitall()
        return allocate(*given)

    y, allocate = x * 3, fused.allocate
    monkeypatch.setattr(fused, "allocate", interrupted)
    y._chunk
    monkeypatch.undo()
    assert len(calls) == 1
    assert y.asnumpy().tolist() == [3] * 2000


def test_a_handler_reads_what_was_just_put_in_place(monkeypatch):
    full = FusionGroup.full

    def interrupted(group):
        told.append(array.asnumpy()[0])
        return full(group)

    array, told = mx.nd.zeros((30_000,)), []
    monkeypatch.setattr(FusionGroup, "full", interrupted)
    for _ in range(3):
        array += 1
        array += 1
    monkeypatch.undo()
    assert told
    assert (array.asnumpy() == 6).all()


def test_handlers_that_work_with_arrays():
    """What a handler computes is right or refused, and what it interrupted goes on as ever."""
    x = np.random.default_rng(3).random((24, 24), np.float32)
    layer = mx.gluon.nn.Dense(5)
    layer.initialize()
    layer.hybridize()
    rows, chance = mx.nd.array(x), random.Random(7)
    right = layer(rows).asnumpy(), rows.asnumpy() * 2 + 1
    found, within = {"refused": 0, "right": 0}, []

    def handler(*_):
        if within:
            return
        within.append(True)
        a = mx.nd.array(x)
        try:
            found["right"] += np.allclose(mx.nd.dot(a, a.T).asnumpy(), x @ x.T, rtol=1e-4)
        except engine.EngineError:
            found["refused"] += 1
        found["all"] = found.get("all", 0) + 1
        within.clear()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 3e-3))
            np.testing.assert_array_equal(layer(rows).asnumpy(), right[0])
            np.testing.assert_array_equal((rows * 2 + 1).asnumpy(), right[1])
            (rows * chance.randrange(9)).sum(axis=chance.randrange(2)).wait_to_read()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found["all"] == found["right"] + found["refused"]
    assert found["right"] > found["refused"]


def test_a_handler_may_begin_groups_amid_the_beginning_of_one():
    """It may end those of shapes that were to be ended: between any two instructions."""

    def pend(sizes):
        return [mx.nd.ones((n,)) + n for n in sizes]

    def watch(frame, event, arg):
        nonlocal left
        if frame.f_code.co_name != "_begin":
            return watch if event == "call" else None
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left == 0:
            sys.settrace(None)
            found.extend(pend(range(40, 52)))
        return watch

    came = 0
    for nth in range(1, 80):
        found, left = pend(range(1, 11)), nth
        sys.settrace(watch)
        try:
            found += pend(range(20, 22))
        finally:
            sys.settrace(None)
        came += left <= 0
        assert all((x == 1 + x.size).asnumpy().all() for x in found)
    assert came > 20
