"""Scans, compiled: values, gradients through zeros and large numbers, and where they are stored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import DTypeError, ParamError, ShapeError
from gnomon.expr.diff import vjp
from gnomon.expr.oracle import evaluate

NUMPY = {
    "sum": (np.add, 0.0),
    "prod": (np.multiply, 1.0),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
    "logaddexp": (np.logaddexp, -np.inf),
}
SHAPES = [(7,), (1,), (3, 5), (17, 33), (9, 1), (2, 70, 3), (5, 1, 7), (0, 3), (3, 0)]


def reference(x, reducer, axis, exclusive, reverse):
    """The same by NumPy, in float64."""
    function, neutral = NUMPY[reducer]
    found = function.accumulate(np.flip(x.astype(np.float64), axis if reverse else ()), axis)
    if exclusive:
        found = np.insert(found, 0, neutral, axis).take(range(x.shape[axis]), axis)
    return np.flip(found, axis if reverse else ())


def tensor(values, dtype=np.float32):
    return shadow.Tensor(np.array(values, dtype))


def stored(e):
    out = shadow.Tensor(np.full(e.shape, 7, e.dtype.numpy))
    out[:] = e
    return out.numpy()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("reducer", NUMPY)
def test_values(shape, reducer):
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    for axis, exclusive, reverse in itertools.product(range(len(shape)), (0, 1), (0, 1)):
        found = stored(shadow.scan(tensor(x), reducer, axis, exclusive, reverse))
        wanted = reference(x, reducer, axis, exclusive, reverse)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_overflow_where_those_in_order_do(dtype):
    big = np.sqrt(np.finfo(dtype).max) * 2
    x = np.array([[0, big, big, big, 2] * 8, [1 / big, big, big, 1 / big, 1] * 8], dtype)
    for reverse in (False, True):
        order = slice(None, None, -1 if reverse else 1)
        with np.errstate(over="ignore", invalid="ignore"):
            wanted = np.cumprod(x[:, order], 1)[:, order]
        found = stored(shadow.scan(tensor(x, dtype), "prod", 1, False, reverse))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_whole_numbers_wrap(dtype):
    x = np.random.default_rng(2).integers(0, 100, (5, 40)).astype(dtype)
    found = stored(shadow.cumsum(tensor(x, dtype), 1))
    np.testing.assert_array_equal(found, np.cumsum(x, 1, dtype))
    assert found.dtype == dtype


def test_half_floats_are_added_up_in_float32():
    x = tensor(np.ones(4000), np.float16)
    np.testing.assert_array_equal(stored(shadow.cumsum(x)), np.arange(1, 4001).astype(np.float16))


def test_anywhere_in_a_statement():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = tensor(x)
    total = np.cumsum(x, 1)
    np.testing.assert_allclose(stored(shadow.cumsum(a, 1).T * 2.0), total.T * 2)
    np.testing.assert_allclose(stored(shadow.cumsum(shadow.cumsum(a, 1), 0)), np.cumsum(total, 0))
    np.testing.assert_allclose(stored(shadow.reduce(shadow.cumsum(a, 1), "sum")), total.sum())
    both = shadow.concat(shadow.cumsum(a, 1), shadow.cumprod(a, 0), 0)
    np.testing.assert_allclose(stored(both), np.concatenate([total, np.cumprod(x, 0)]))
    joined = shadow.cumsum(shadow.concat(a, a, 1), 1)
    np.testing.assert_allclose(stored(joined), np.cumsum(np.hstack([x, x]), 1))
    share = a / shadow.broadcast_to(shadow.reduce(a, "sum"), (3, 4))
    np.testing.assert_allclose(stored(shadow.cumsum(share, 0)), np.cumsum(x / x.sum(), 0), 1e-6)


def test_into_what_it_reads():
    x = np.arange(6, dtype=np.float32)
    a = shadow.Tensor(x)
    a += shadow.scan(a * 1.0, exclusive=True)
    np.testing.assert_array_equal(x, [0, 1, 3, 6, 10, 15])
    a[:] = shadow.cumsum(a)
    np.testing.assert_array_equal(x, [0, 1, 4, 10, 20, 35])
    shadow.slice(a, 1, 6).assign(shadow.cumsum(shadow.slice(a, 0, 5)))
    np.testing.assert_array_equal(x, [0, 0, 1, 5, 15, 35])


def test_what_follows_changes_no_bit():
    x = np.random.default_rng(3).normal(size=(2, 300)).astype(np.float32)
    whole = stored(shadow.cumsum(tensor(x), 1))
    for n in (1, 15, 16, 47, 299):
        part = shadow.Tensor(np.ascontiguousarray(x[:, :n]))
        np.testing.assert_array_equal(stored(shadow.cumsum(part, 1)), whole[:, :n])


def test_a_reducer_of_ones_own_in_its_order():
    @shadow.op
    def digits(a, b):
        return 10.0 * a + b

    found = stored(shadow.scan(tensor([1, 2, 3]), shadow.red.make(digits, 0.0)))
    np.testing.assert_array_equal(found, [1, 12, 123])


def gradient(e, x, g):
    (found,) = vjp([e], [tensor(g, x.dtype.numpy)], [x])
    np.testing.assert_allclose(stored(found), evaluate(found), 1e-6)
    return stored(found)


@pytest.mark.parametrize("zeros", [(), (0,), (2,), (4,), (1, 3), (0, 1)])
def test_gradient_of_products_with_zeros(zeros):
    values = np.array([2.0, 3, -1, 0.5, 4])
    values[list(zeros)] = 0
    x, g = tensor(values, np.float64), np.array([1.0, -2, 3, 5, 7])
    for exclusive, reverse in itertools.product((False, True), repeat=2):
        found = gradient(shadow.scan(x, "prod", 0, exclusive, reverse), x, g)

        def value(y, exclusive=exclusive, reverse=reverse):
            return reference(y, "prod", 0, exclusive, reverse) @ g

        steps = np.eye(5) * 1e-6
        slopes = [(value(values + h) - value(values - h)) / 2e-6 for h in steps]
        np.testing.assert_allclose(found, slopes, 1e-6, 1e-6)


def test_gradient_of_logarithms_of_large_numbers():
    x = tensor([1000, 1001, -3000, 999], np.float64)
    g = np.array([1.0, -2, 0.5, 4])
    found = gradient(shadow.logcumsumexp(x), x, g)
    low = tensor([0, 1, -4000, -1], np.float64)
    np.testing.assert_allclose(found, gradient(shadow.logcumsumexp(low), low, g), 1e-9)
    assert np.isfinite(found).all()


def test_what_is_refused():
    x = tensor([[1, 2]])
    with pytest.raises(ShapeError, match="cumsum: argument 'axis': expected an axis from 0 to 1"):
        shadow.cumsum(x, 2)
    with pytest.raises(ParamError, match="scan: argument 'reducer': expected one of sum, prod"):
        shadow.scan(x, "median")
    with pytest.raises(ParamError, match="one of single values, got argmax"):
        shadow.scan(x, shadow.reducer.ARGMAX)
    with pytest.raises(DTypeError, match="scan: argument 'src': expected a dtype of numbers"):
        shadow.cumsum(shadow.Tensor(np.ones(3, bool)))
    with pytest.raises(DTypeError, match="floating-point numbers"):
        shadow.logcumsumexp(tensor([1, 2], np.int32))
