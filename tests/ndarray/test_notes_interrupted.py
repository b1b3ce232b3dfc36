"""What is noted stays right where finalisers compute meanwhile, and where threads share."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from ndarray.noted_steps import begin_soon, counted

from gnomon import autograd, config, nd
from gnomon.base import MidwayError
from gnomon.executor.recorded_step import Plan
from gnomon.ndarray.lazy import notes, recorded
from gnomon.runtime.devices import pool

W = np.linspace(-0.4, 0.5, 16, dtype=np.float32).reshape(4, 4)


@pytest.fixture
def often() -> Any:
    """Garbage is looked for every few objects."""
    before = gc.get_threshold()
    gc.set_threshold(7, 2, 2)
    yield
    gc.set_threshold(*before)


def test_finalisers_compute_while_operators_are_noted(often: Any) -> None:
    w, x, keep = nd.array(W), nd.ones((3, 4)), nd.ones((4,))
    w.attach_grad()
    wrong: list[Any] = []
    held: list[Any] = [None]

    class Computes:
        turn = 0

        def __init__(self) -> None:
            self.own = self  # garbage that only the collector finds

        def __del__(self) -> None:
            Computes.turn += 1
            try:
                if Computes.turn % 3 == 0:
                    nd.dot(w, w)  # noted, were it not for what is going on
                elif Computes.turn % 3 == 1 and held[0] is not None:
                    held[0].asnumpy()  # noted perhaps
                elif (keep * 2 + 1).asnumpy().tolist() != [3] * 4:
                    wrong.append(keep)
            except MidwayError as error:  # the collector ran in the midst of the program, or pool
                if Computes.turn % 3 != 1 and "amidst a request" not in str(error):
                    wrong.append(error)
            except Exception as error:
                wrong.append(error)

    seen = []
    for _ in range(300):
        Computes()
        with autograd.record():
            h = nd.relu(nd.dot(x, w))
            Computes()
            held[0] = h
            h = nd.tanh(nd.dot(h, w) + h)
            loss = (h * h).sum()
        loss.backward()
        first = float(held[0].asnumpy().sum())
        seen.append((first, loss.asscalar(), *w.grad.asnumpy().ravel()))
    del Computes.__del__
    assert not wrong
    np.testing.assert_allclose(seen, seen[:1] * len(seen), rtol=1e-5)


def test_one_thread_notes_at_a_time_and_others_read() -> None:
    rounds, made, failed = 150, [None, None], []
    barrier = threading.Barrier(2, timeout=30)

    def steps(number: int) -> None:
        w = nd.array(W[number])
        w.attach_grad()
        for _ in range(rounds):
            with autograd.record():
                y = w
                for _ in range(8):
                    y = y * 1.5
            made[number] = y
            barrier.wait()
            found = made[1 - number].asnumpy()  # type: ignore[attr-defined]
            if not np.allclose(found, W[1 - number] * 1.5**8):
                failed.append(found)
            barrier.wait()

    threads = [threading.Thread(target=steps, args=(k,), daemon=True) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed and not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("before", ["admit", "_met", "_done", "_reads", "forwarded"])
def test_a_finaliser_computes_what_a_program_is_about_to(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each line where that may happen: it is right, and the next step is a program again."""
    begin_soon(monkeypatch)
    w = nd.array(W)
    w.attach_grad()
    asked: list[Any] = []
    made: list[Any] = []

    class Computes:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __del__(self) -> None:
            asked.append(self.array.asnumpy())

    owner: Any = notes.Record if hasattr(notes.Record, before) else notes
    usual = getattr(owner, before)

    def releases(*given: Any) -> Any:
        made.clear()  # which ends the object, here and now
        return usual(*given)

    monkeypatch.setattr(owner, before, releases)
    for reads in (False, True):
        runs = counted(monkeypatch, Plan, "backward" if reads else "run")
        for k in range(10):
            with autograd.record():
                h = nd.tanh(nd.dot(nd.ones((3, 4)) * k, w))
                loss = (h * h).sum()
            if k % 7 < 4:
                made.append(Computes(h))
            del h
            if reads:
                loss.asscalar()
            loss.backward()
            right = np.tanh(np.ones((3, 4)) * k @ W)
            gradient = (np.ones((4, 3)) * k) @ (2 * right * (1 - right**2))
            np.testing.assert_allclose(w.grad.asnumpy(), gradient, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(loss.asscalar(), (right**2).sum(), rtol=1e-5)
            made.clear()
            np.testing.assert_allclose(asked.pop(), right, rtol=1e-5) if k % 7 < 4 else None
        assert not asked
        assert runs


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("scale", [1, 2])
def test_what_is_refused_amidst_a_request_for_memory_is_there_afterwards(
    scale: int, recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector may run while the thread is in the pool: nothing is lost that was pending."""
    begin_soon(monkeypatch)
    w = nd.array(W)
    w.attach_grad()
    with config.using(programs=recorded), autograd.record() if recorded else autograd.pause():
        h = nd.tanh(w if scale == 1 else w * scale)
        pool.release_all()
        with pool.pool_of("cpu").lock, pytest.raises(MidwayError, match="amidst a request"):
            h.asnumpy()
        np.testing.assert_allclose(h.asnumpy(), np.tanh(W * scale), rtol=1e-5)
    if recorded:
        h.backward()
        gradient = (1 - np.tanh(W * scale) ** 2) * scale
        np.testing.assert_allclose(w.grad.asnumpy(), gradient, rtol=1e-5)


def test_a_handler_computes_what_was_just_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result is in the hands of who noted it, though nothing else has it yet."""
    begin_soon(monkeypatch)
    w = nd.array(W)
    w.attach_grad()
    usual, times = notes.put, [0]

    def interrupted(record: Any, name: str, value: Any) -> None:
        usual(record, name, value)
        if name == "mark" and value.count and times[0] % 3 == 2:
            record()
        times[0] += name == "mark"

    monkeypatch.setattr(notes, "put", interrupted)
    for k in range(12):
        with autograd.record():
            h = nd.tanh(nd.dot(nd.ones((3, 4)) * k, w))
            loss = (h * h).sum()
        loss.backward()
        right = np.tanh(np.ones((3, 4)) * k @ W)
        np.testing.assert_allclose(loss.asscalar(), (right**2).sum(), rtol=1e-5)
    assert times[0] > 10


def test_a_state_is_asked_for_as_an_operator_is_noted_whose_gradient_changes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by a signal's handler that saves the parameters."""
    x = nd.array(W[None])
    gamma, beta, mean, var = (nd.full((4,), k) for k in (1.0, 2.0, 3.0, 4.0))
    gamma.attach_grad()
    source, asked = recorded.source, 2

    def interrupted(array: Any) -> Any:
        nonlocal asked
        if asked and (array is mean or array is var):
            asked -= 1
            array.asnumpy()
        return source(array)

    monkeypatch.setattr(recorded, "source", interrupted)
    for _ in range(3):
        with autograd.record():
            made = nd.BatchNorm(x * 1, gamma, beta, mean, var, momentum=0.5, fix_gamma=False)
        made.backward()
    assert not asked
    want = 3.0
    for _ in range(3):
        want = want * 0.5 + 0.5 * W[None].mean(axis=(0, 2))
    np.testing.assert_allclose(mean.asnumpy(), want, rtol=1e-5)
