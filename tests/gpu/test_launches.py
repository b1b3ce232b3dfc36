"""Statements of tensors on a GPU that come again are not planned again."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import GnomonError
from gnomon.runtime.devices import pool
from gnomon.runtime.statements import gpu_launch
from gnomon.shadow import TensorContainer, fn
from tests.gpu.test_recipes import unplanned


def on(values, device=shadow.gpu, stream=None):
    values = np.asarray(values, np.float32)
    made = TensorContainer(values.shape, pad=False, device=device)
    shadow.copy(made, shadow.Tensor(values))
    made.stream_ = stream
    return made


@pytest.fixture(autouse=True)
def _fresh():
    gpu_launch._known.clear()


def test_memory_and_numbers_come_with_each_statement(monkeypatch):
    def check(k):
        x, y = np.arange(6.0).reshape(2, 3) + k, np.full((2, 3), 2.0 + k)
        a, b = on(x), on(y)
        a[:] = a * (k + 0.5) + fn.exp(b) / 3.0 - (k + 0.5)
        want = x * (k + 0.5) + np.exp(y) / 3.0 - (k + 0.5)
        np.testing.assert_allclose(a.numpy(), want, 1e-5)
        b += 1.0
        np.testing.assert_allclose(b.numpy(), y + 1, 1e-5)

    check(0)
    check(1)
    with unplanned(monkeypatch):
        check(2)


def test_numbers_that_shape_the_plan_are_not_filled_in():
    for number in (2.0, 3.0, 0.5, 1.0, 0.0, 2.0):
        a = on([1.0, 4.0, 9.0])
        a[:] = a**number
        np.testing.assert_allclose(a.numpy(), np.array([1.0, 4.0, 9.0]) ** number, 1e-5)


def test_which_memory_is_the_same_counts():
    for _ in range(3):
        a, b, c = on([1, 2, 3]), on([4, 5, 6]), on([7, 8, 9])
        c[:] = a * b
        a[:] = a * b
        b[:] = b * b
        for found, want in ((a, [4, 10, 18]), (b, [16, 25, 36]), (c, [4, 10, 18])):
            np.testing.assert_array_equal(found.numpy(), want)
        d = on(np.arange(8.0))
        d[1:] = d[:7] + d[1:]  # all is read before it is written
        np.testing.assert_array_equal(d.numpy(), [0, *(np.arange(7) + np.arange(1, 8))])


def test_which_nodes_are_shared_counts():
    for first, second in ((2.0, 2.0), (2.0, 3.0), (5.0, 7.0)):
        a = on([1.0, 2.0])
        if first == second:
            same = a * first
            a[:] = same + same
        else:
            a[:] = a * first + a * second
        np.testing.assert_allclose(a.numpy(), [first + second, 2 * (first + second)])


def test_products_and_temporaries(monkeypatch):
    def check(seed):
        x, y = np.random.RandomState(seed).randn(2, 4, 4).astype(np.float32)
        a, b, c = on(x), on(y), on(x)
        a[:] = shadow.dot(a, b.T)  # by way of a temporary: it reads what it writes
        c += shadow.dot(b, c) * 2.0  # the factor is no word
        np.testing.assert_allclose(a.numpy(), x @ y.T, 1e-4, 1e-4)
        np.testing.assert_allclose(c.numpy(), x + 2 * y @ x, 1e-4, 1e-4)

    check(0)
    check(1)
    before = pool.stats("gpu(0)").used
    check(2)
    a = on(np.eye(3))
    for k in range(3):
        if k < 2:
            a[:] = shadow.dot(a, a)
        else:
            with unplanned(monkeypatch):
                a[:] = shadow.dot(a, a)
    np.testing.assert_array_equal(a.numpy(), np.eye(3))
    del a
    assert pool.stats("gpu(0)").used == before


def test_streams(monkeypatch):
    streams = [shadow.Stream(shadow.gpu) for _ in range(2)]
    tensors = [on(np.arange(5.0), stream=s) for s in (None, *streams)]

    def check(k):
        for t in tensors:
            t += float(k)
        tensors[0][:] = tensors[0] + tensors[1]
        tensors[1][:] = tensors[0] + tensors[2]

    want = [np.arange(5.0)] * 3
    for k in range(4):
        if k < 2:
            check(k)
        else:
            with unplanned(monkeypatch):
                check(k)
        a, b, c = (w + k for w in want)
        want = [a + b, a + b + c, c]
    for t, w in zip(tensors, want, strict=True):
        np.testing.assert_array_equal(t.numpy(), w)


def test_two_gpus():
    for _ in range(3):
        for device in (shadow.gpu(0), shadow.gpu(1)):
            t = on([1.0, 2.0], device)
            t[:] = t * 3.0
            np.testing.assert_array_equal(t.numpy(), [3, 6])


def test_what_is_refused_stays_refused():
    a = on([1.0, 2.0])
    for _ in range(3):
        a[:] = a + 1.0
    b = on([1.0, 2.0], shadow.gpu(1))
    for _ in range(3):
        with pytest.raises(GnomonError, match=r"gpu\(0\)"):
            a[:] = a + b
        with pytest.raises(GnomonError, match="shape"):
            a[:] = on([1.0, 2.0, 3.0]) + 1.0
    np.testing.assert_array_equal(a.numpy(), [4, 5])


def test_a_tensor_of_another_shape():
    a = on([1.0, 2.0])
    for _ in range(3):
        a[:] = a + 1.0
    a.resize((3,))
    for k in range(3):
        a[:] = float(k)
        a += 2.0
        np.testing.assert_array_equal(a.numpy(), np.full(3, k + 2))
