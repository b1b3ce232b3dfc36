"""What is noted stays right where finalisers compute meanwhile, and where threads share."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

from gnomon import autograd, nd

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
        seen.append((loss.asscalar(), *w.grad.asnumpy().ravel()))
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
