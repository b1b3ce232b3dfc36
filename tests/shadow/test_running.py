"""How statements run: layouts and tails, threads, no temporaries, overlap, one kernel for many."""

from __future__ import annotations

import itertools
import threading
import tracemalloc

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import ShapeError
from gnomon.runtime.execution import threads
from gnomon.runtime.kernels.cache import CACHE
from gnomon.shadow import F, Tensor, TensorContainer, fn
from tests.shadow.memory import watched_pool


@pytest.fixture
def two_threads():
    before = threads.num_threads()
    yield
    threads.set_num_threads(before)


# -- packets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_every_length_and_alignment(dtype):
    """Vectors start anywhere and end anywhere; nothing around the destination is touched."""
    base = (np.arange(400) % 50).astype(dtype)
    for n, skip in itertools.product([*range(1, 40), 63, 64, 65, 127, 200], (0, 1, 3)):
        memory = np.full(300, 9, dtype)
        a, b = Tensor(base[skip : skip + n]), Tensor(base[7 : 7 + n])
        Tensor(memory[5 + skip : 5 + skip + n]).assign(a + b)
        want = np.full(300, 9, dtype)
        want[5 + skip : 5 + skip + n] = base[skip : skip + n] + base[7 : 7 + n]
        np.testing.assert_array_equal(memory, want)


def views_of(shape: tuple[int, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    rows, columns = shape
    return {
        "dense": rng.normal(size=shape),
        "padded": rng.normal(size=(rows, columns + 3))[:, :columns],
        "strided": rng.normal(size=(3 * rows, 2 * columns))[::3, ::2],
        "reversed": rng.normal(size=shape)[::-1, ::-1],
        "turned": rng.normal(size=shape[::-1]).T,
    }


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (70, 3), (17, 33)])
@pytest.mark.parametrize("dest", ["dense", "padded", "strided", "reversed", "turned"])
def test_every_layout_of_operands_and_destinations(shape, dest):
    rng = np.random.default_rng(1)
    for (_, x), (_, y) in itertools.product(views_of(shape, rng).items(), repeat=2):
        out = views_of(shape, rng)[dest]
        want = out - (x * y + x)
        Tensor(out).assign(Tensor(x) * Tensor(y) + Tensor(x), shadow.minusto)
        np.testing.assert_allclose(out, want, rtol=1e-12, atol=1e-12)


def test_padding_between_rows_is_not_written():
    memory = np.full((4, 10), 7, np.float32)
    t = Tensor(memory[:, :6])
    t[:] = t * 2.0
    assert (memory[:, :6] == 14).all()
    assert (memory[:, 6:] == 7).all()


# -- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: F("tanh")(a) * b - 0.5,
        lambda a, b: shadow.broadcast_to(shadow.reduce(a, "sum", (1,), keepdims=True), a.shape) * b,
        lambda a, b: a - shadow.broadcast_to(shadow.reduce(b, "sum", (0,), keepdims=True), a.shape),
        lambda a, b: b.T.T + shadow.flip(a, 0),
    ],
)
def test_results_do_not_depend_on_the_number_of_threads(make, two_threads):
    rng = np.random.default_rng(2)
    a, b = (Tensor(rng.normal(size=(600, 700)).astype("f")) for _ in range(2))
    found = []
    for count in (1, 2, 3):
        threads.set_num_threads(count)
        out = TensorContainer((600, 700))
        out[:] = make(a, b)
        found.append(out.numpy().copy())
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_a_full_reduction_does_not_depend_on_the_number_of_threads(two_threads):
    x = Tensor(np.random.default_rng(3).normal(size=1_000_003).astype("f"))
    found = set()
    for count in (1, 2, 3):
        threads.set_num_threads(count)
        out = TensorContainer(())
        out[:] = shadow.reduce(x, "sum")
        found.add(float(out.numpy()))
    assert len(found) == 1


def test_statements_of_several_python_threads():
    """Kernels are shared, argument blocks are not."""
    rng = np.random.default_rng(4)
    xs = [rng.normal(size=300).astype("f") for _ in range(4)]
    failures = []

    def work(x: np.ndarray, scale: float) -> None:
        t = TensorContainer(x.shape)
        for _ in range(200):
            t[:] = Tensor(x) * scale + 1.0
            if not np.array_equal(t.numpy(), x * np.float32(scale) + 1):
                failures.append(scale)

    workers = [threading.Thread(target=work, args=(x, k + 1.0)) for k, x in enumerate(xs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


# -- kernels ---------------------------------------------------------------------------------


def test_numbers_and_sizes_are_arguments():
    """Another learning rate, length or memory compiles nothing; another structure does."""

    def update(n: int, rate: float) -> None:
        w, g = TensorContainer((n,), init=1.0), TensorContainer((n,), init=2.0)
        w[:] = -rate * (g + 0.125 * w) * rate
        assert np.allclose(w.numpy(), -rate * 2.125 * rate)

    update(10, 0.5)
    known = set(CACHE.kernels)
    for n, rate in itertools.product((10, 11, 5000), (0.5, 0.25, -3.0)):
        update(n, rate)
    assert set(CACHE.kernels) == known


# -- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 2_000_000])
def test_the_update_of_weights_allocates_nothing(n, monkeypatch):
    """`w[:] = -eta * (g + lam * w)`: no block of the pool, and Python memory of constant size."""
    w, g = Tensor(np.ones(n, np.float32)), Tensor(np.ones(n, np.float32))
    eta, lam = 0.1, 0.01
    for _ in range(3):  # the second is noted, which takes the classes for that from their modules
        w[:] = -eta * (g + lam * w)
    tracemalloc.start()
    with watched_pool(monkeypatch) as sizes:
        for _ in range(3):
            w[:] = -eta * (g + lam * w)
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not sizes
    assert peak < 20_000


@pytest.mark.parametrize(
    ("make", "largest"),
    [
        (lambda a: fn.exp(a.T) * 2.0, 0),
        (lambda a: shadow.flip(a, 0) + a, 0),
        (lambda a: shadow.implicit_dot(a, a.T), 0),
        (lambda a: a / shadow.broadcast_to(shadow.reduce(a, "sum", 1, keepdims=True), a.shape), 0),
        # the means of columns are computed once, in memory of their own size
        (
            lambda a: a - shadow.broadcast_to(shadow.reduce(a, "sum", 0, keepdims=True), a.shape),
            512,
        ),
    ],
)
def test_maps_and_chainers_take_no_memory_of_their_size(make, largest, monkeypatch):
    a = Tensor(np.random.default_rng(5).normal(size=(128, 128)).astype("f"))
    out = TensorContainer((128, 128))
    with watched_pool(monkeypatch) as sizes:
        out[:] = make(a)
    assert max(sizes, default=0) <= largest


# -- overlap ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 17, 64, 1000, 300_000])
@pytest.mark.parametrize("shift", [-70, -3, -1, 0, 1, 3, 70])
def test_shifts(n, shift):
    """What a shifted self-assignment gives is what evaluating the right side first gives."""
    memory = np.random.default_rng(n).normal(size=n + 140).astype("f")
    want = memory.copy()
    source, target = memory[70 + shift : 70 + shift + n], memory[70 : 70 + n]
    want[70 : 70 + n] = memory[70 + shift : 70 + shift + n] * 2 + memory[70 : 70 + n]
    Tensor(target).assign(Tensor(source) * 2.0 + Tensor(target))
    np.testing.assert_array_equal(memory, want)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: shadow.flip(a, 0) + 1.0,
        lambda a: shadow.flip(a, 1) * a,
        lambda a: a.T + a,
        lambda a: a.T.T * 2.0,
        lambda a: shadow.implicit_dot(a, a),
        lambda a: a - shadow.broadcast_to(shadow.reduce(a, "max", 0, keepdims=True), a.shape),
        lambda a: a - shadow.broadcast_to(shadow.reduce(a, "max", 1, keepdims=True), a.shape),
    ],
)
def test_a_destination_that_is_read(make):
    x = np.random.default_rng(6).normal(size=(65, 65)).astype("f")
    want = TensorContainer((65, 65))
    want[:] = make(Tensor(x.copy()))
    a = Tensor(x)
    a[:] = make(a)
    np.testing.assert_array_equal(x, want.numpy())


def test_crossed_rows_of_one_memory():
    x = np.arange(40, dtype=np.float32).reshape(4, 10)
    want = x.copy()
    want[1:, :8] += x[:3, 2:]
    Tensor(x[1:, :8]).assign(Tensor(x[:3, 2:]), shadow.plusto)
    np.testing.assert_array_equal(x, want)


def test_elements_that_share_memory_are_no_destination():
    memory = np.zeros(6, np.float32)
    windows = np.lib.stride_tricks.as_strided(memory, (4, 3), (4, 4))
    with pytest.raises(ShapeError, match="do not share memory"):
        Tensor(windows).assign(1.0)
    out = TensorContainer((4, 3), init=0.0)
    out += Tensor(windows) + 1.0  # as an operand they do
    assert (out.numpy() == 1).all()
    assert not memory.any()
