"""Statements that come again: one native call, which does what the first one did."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import ShapeError
from gnomon.runtime.execution import threads
from gnomon.runtime.statements import dispatch
from gnomon.shadow import Tensor, TensorContainer, fn


@pytest.fixture(autouse=True)
def afresh():
    dispatch.forget()


def launches(saver: str = "saveto") -> int:
    found = 0
    for first in dispatch.KNOWN[saver].values():
        launch = first
        while launch is not None:
            found, launch = found + 1, launch.following
    return found


def test_the_third_time_is_a_launch_with_other_memory_and_numbers():
    for k in range(6):
        x, y = Tensor(np.arange(9, dtype="f") + k), Tensor(np.ones(9, "f"))
        y[:] = -0.5 * (x + k * y)
        np.testing.assert_array_equal(y.numpy(), -0.5 * (np.arange(9, dtype="f") + k + k))
        assert launches() == (k >= 1)


def test_operands_that_are_one_and_operands_that_are_two():
    rng = np.random.default_rng(0)
    memory = rng.integers(-9, 9, size=60).astype("f")
    places = [(0, 20, 40), (0, 0, 0), (0, 1, 2), (0, 0, 20), (5, 0, 0), (0, 20, 20), (30, 20, 0)]
    for _ in range(4):
        for d, a, b in places:
            ours, want = memory.copy(), memory.copy()
            dest, left, right = (Tensor(ours[p : p + 20]) for p in (d, a, b))
            want[d : d + 20] = want[a : a + 20] * 2 - want[b : b + 20]
            dest[:] = left * 2.0 - right
            np.testing.assert_array_equal(ours, want, f"{(d, a, b)}")
    assert launches() > 1


def test_a_number_used_twice_is_not_two_numbers():
    x, y = (Tensor(np.full(5, 2.0, "f")) for _ in range(2))
    for k in range(1, 5):
        s = shadow.scalar(float(k))
        y[:] = (x * s) + s
        assert (y.numpy() == 3 * k).all()
        y[:] = (x * float(k)) + 1.0
        assert (y.numpy() == 2 * k + 1).all()


def test_other_kinds_of_statements():
    m = Tensor(np.arange(12, dtype="f").reshape(3, 4))
    turned, rows = Tensor(np.arange(12, dtype="f").reshape(4, 3).T), Tensor(np.zeros(4, "f"))
    whole = Tensor(np.arange(12, dtype=np.int16).astype(np.int32).reshape(3, 4)[:, ::2])
    for k in range(1, 5):
        m[:] = turned * float(k)
        np.testing.assert_array_equal(m.numpy(), turned.numpy() * k)
        rows[:] = shadow.sum_rows(m)
        np.testing.assert_array_equal(rows.numpy(), m.numpy().sum(0))
        before = whole.numpy().copy()
        whole *= k
        np.testing.assert_array_equal(whole.numpy(), before * k)
        rows[:] = float(k)
        assert (rows.numpy() == k).all()
        e = fn.exp(m * 0.01)
        m[:] = e / shadow.broadcast_to(shadow.reduce(e, "sum", 1, True), m.shape)
        np.testing.assert_allclose(m.numpy().sum(1), 1, rtol=1e-5)
    assert launches() == 4


def test_memory_is_let_go():
    for _ in range(4):
        array = np.ones(1000, "f")
        t = Tensor(array)
        t[:] = t * 0.5 + t
        gone = weakref.ref(array)
        del array, t
        gc.collect()
        assert gone() is None


def test_expressions_of_a_shape_that_was():
    kept, moved, out = TensorContainer((6,), init=1.0), TensorContainer((6,), init=2.0), None
    out = TensorContainer((6,))
    old, good = moved + 1.0, kept + 1.0
    for _ in range(4):
        out[:] = good
    moved.resize((3,))
    for _ in range(4):
        out[:] = good
        with pytest.raises(ShapeError):
            out[:] = old
    moved.resize((6,)).assign(5.0)
    for _ in range(3):
        out[:] = moved + 1.0
        assert (out.numpy() == 6.0).all()


def test_memory_that_is_gone_is_named():
    t, out = shadow.alloc_space((4,)), TensorContainer((4,))
    for _ in range(4):
        out[:] = t * 2.0
    shadow.free_space(t)
    with pytest.raises(ValueError):
        out[:] = t * 2.0


def test_threads_share_launches():
    wrong = []

    def work(k: float) -> None:
        x, s = Tensor(np.full(50_000, k, "f")), Tensor(np.zeros(1, "f"))
        for _ in range(60):
            s[:] = shadow.reduce(x, "max", 0, True) * 2.0
            if s.numpy()[0] != 2 * k:
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k + 1.0,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_another_number_of_threads_takes_another_launch():
    x, y = Tensor(np.ones(300_000, "f")), Tensor(np.ones(300_000, "f"))
    count = threads.num_threads()
    try:
        for n in (count, 1, 3):
            threads.set_num_threads(n)
            for _ in range(3):
                y[:] = x * 2.0 + y
    finally:
        threads.set_num_threads(count)
    assert (y.numpy() == 19).all()
    assert launches() == 3
