"""Extensions take no memory of the size of their data: whole reductions, sums of rows, trials."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.runtime.execution import threads
from gnomon.shadow import Random, Tensor
from tests.shadow.memory import watched_pool

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 400)).astype(np.float32)
INDEX = RNG.integers(0, 40, 300)
WHOLE = {
    "sum": lambda x: shadow.reduce(x, "sum", keepdims=True),
    "max of a window's sums": lambda x: shadow.reduce(
        shadow.pool("sum", x, 3, 2), "max", None, True
    ),
    "sum of a concat": lambda x: shadow.reduce(shadow.concat(x, x * 2.0, 1), "sum", None, True),
    "sum of a frame": lambda x: shadow.reduce(shadow.pad(x, 2), "sum", None, True),
    "argmax": lambda x: shadow.tcast(
        "float32", shadow.arg_reduce(shadow.reshape(x, (1, -1)), "max", 1, True)
    ),
    "product": lambda x: shadow.reduce(shadow.implicit_dot(x, x.T), "max", None, True),
}


@pytest.mark.parametrize("name", WHOLE)
def test_one_number_of_all_takes_what_threads_found(name, monkeypatch):
    x, out = Tensor(X), Tensor(np.zeros((1, 1), np.float32))
    with watched_pool(monkeypatch) as sizes:
        out[:] = WHOLE[name](x)
    assert sum(sizes) <= X.nbytes / 100


ROWS = {
    "gradient": lambda t, i, g: t.assign(shadow.take_grad(i, g, 50)),
    "added": lambda t, i, g: t.__iadd__(shadow.take_grad(i, g, 50)),
    "update": lambda t, i, g: t.__isub__(0.1 * shadow.take_grad(i, g, 50)),
    "decayed": lambda t, i, g: t.assign(0.9 * (t - shadow.take_grad(i, g, 50) / 3.0)),
    "of an expression": lambda t, i, g: t.assign(-shadow.take_grad(i, shadow.fn.exp(g), 50) + t),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_added_where_they_belong(name, monkeypatch):
    old = RNG.normal(size=(50, 400)).astype(np.float32)

    def run(count: int) -> np.ndarray:
        threads.set_num_threads(count)
        memory = old.copy()
        ROWS[name](Tensor(memory), Tensor(INDEX), Tensor(X))
        return memory

    before = threads.num_threads()
    try:
        with watched_pool(monkeypatch) as sizes:
            one = run(1)
        assert not sizes
        assert (run(3) == one).all()
    finally:
        threads.set_num_threads(before)
    rows = np.zeros((50, 400))
    np.add.at(rows, INDEX, np.exp(X) if name == "of an expression" else X)
    want = {
        "gradient": rows,
        "added": old + rows,
        "update": old - 0.1 * rows,
        "decayed": 0.9 * (old - rows / 3),
        "of an expression": old - rows,
    }
    np.testing.assert_allclose(one, want[name], rtol=1e-4, atol=1e-4)


def test_sums_that_are_no_summand_take_memory_of_their_own_size_once(monkeypatch):
    memory = np.ones((50, 400), np.float16)
    g = Tensor(np.ones((300, 400), np.float16))
    zeros = Tensor(np.zeros(300, np.int64))
    with watched_pool(monkeypatch) as sizes:
        Tensor(memory)[:] = shadow.take_grad(zeros, g, 50)
    assert sizes == [4 * 50 * 400]  # half floats are summed in float32
    assert (memory[0] == 300).all()
    wide = Tensor(np.zeros((50, 400), np.float32))
    with watched_pool(monkeypatch) as sizes:
        wide[:] = shadow.fn.exp(shadow.take_grad(Tensor(INDEX), Tensor(X), 50) * 0.0)
    assert sizes == [4 * 50 * 400]
    assert (wide.numpy() == 1).all()


@pytest.mark.parametrize("shape", [(3000, 200), (200, 3000), (9000, 5, 13), (2000, 1, 300)])
@pytest.mark.parametrize("count", [40, 5000])
def test_rows_are_filled_and_added_to_by_whoever_has_them(shape, count):
    """Few rows for many are searched for by tasks that have the others; many go along columns."""
    index = RNG.integers(-1, shape[0] + 1, count)
    index[::3] = 7
    rows = RNG.integers(0, 9, (count, *shape[1:])).astype(np.float32)
    want = np.zeros(shape, np.float32)
    np.add.at(want, index.clip(0, shape[0] - 1), rows)
    before = threads.num_threads()
    try:
        for n in (1, 2, 3):
            threads.set_num_threads(n)
            got = Tensor(np.full(shape, 7, np.float32))
            got[:] = shadow.take_grad(Tensor(index), Tensor(rows), shape[0])
            np.testing.assert_array_equal(got.numpy(), want)
            got -= shadow.take_grad(Tensor(index), Tensor(rows), shape[0])
            assert not got.numpy().any()
    finally:
        threads.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2])
def test_a_scatter_of_what_is_put_together_of_parts(count):
    parts = [np.full((count, n), float(n), np.float32) for n in (3, 2)]
    got = Tensor(np.full((3, 5), 7, np.float32))
    joined = shadow.concat(*map(Tensor, parts), 1)
    got[:] = shadow.take_grad(Tensor(np.full(count, 2)), joined, 3)
    want = np.zeros((3, 5), np.float32)
    want[2] = count * np.array([3, 3, 3, 2, 2])
    np.testing.assert_array_equal(got.numpy(), want)


def test_a_scatter_below_what_is_used_twice():
    rows = Tensor(np.ones((2, 3), np.float32))
    once = 3.0 - shadow.take_grad(Tensor(np.array([1, 1])), rows, 2)
    got = Tensor(np.zeros((2, 3), np.float32))
    got[:] = once + once * once
    np.testing.assert_array_equal(got.numpy(), np.array([[12.0] * 3, [2.0] * 3]))


def test_a_scatter_that_reads_what_it_is_added_to():
    w = RNG.normal(size=(6, 4)).astype(np.float32)
    index = np.array([0, 3, 3, 5])
    want = w.copy()
    np.add.at(want, index, w[index] * 2)
    t = Tensor(w)
    t += shadow.take_grad(Tensor(index), shadow.take(Tensor(index), t) * 2.0, 6)
    np.testing.assert_allclose(w, want, rtol=1e-6)
    want = w - np.array([np.sum(w[index][index == r], 0) for r in range(6)])
    t[:] = t - shadow.take_grad(Tensor(index), shadow.take(Tensor(index), t), 6)
    np.testing.assert_allclose(w, want, rtol=1e-6)


def test_trials_take_nothing(monkeypatch):
    rnd, out = Random(seed=1), Tensor(np.zeros(5000, np.float32))
    with watched_pool(monkeypatch) as sizes:
        out[:] = rnd.gamma((5000,), 0.5)
        out[:] = rnd.poisson((5000,), 30.0)
    assert not sizes
