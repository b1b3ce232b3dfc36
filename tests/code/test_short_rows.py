"""Reductions of rows that one or two registers hold, and of those around them, agree with NumPy."""

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.code import cpu
from gnomon.code.target import TARGETS
from gnomon.expr import fn
from gnomon.expr.ext import arg_reduce, reduce
from gnomon.expr.node import Buffer
from gnomon.plan.statement import Store
from gnomon.runtime.statements.dispatch import store
from tests.code.elsewhere import nests_of

REDUCERS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129)


def reduced(x, name, change=lambda e: e):
    got = np.empty(x.shape[:1], x.dtype)
    value = Buffer(x.shape, dt.of(x.dtype.name), None, x.ctypes.data, x)
    dest = Buffer(got.shape, dt.of(x.dtype.name), None, got.ctypes.data, got)
    store(dest, "saveto", reduce(change(value), name, 1))
    return got


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("name", REDUCERS)
def test_rows_of_all_lengths(name, dtype):
    rng = np.random.default_rng(3)
    for n in LENGTHS:
        x = rng.integers(1, 3, (37, n)).astype(dtype)
        if dtype.startswith("f"):
            x *= rng.uniform(0.9, 1.1, x.shape).astype(dtype)
        expected = REDUCERS[name](x, axis=1, dtype=dtype) if name in ("sum", "prod") else None
        expected = REDUCERS[name](x, axis=1) if expected is None else expected
        np.testing.assert_allclose(reduced(x, name), expected, rtol=2e-5)
        np.testing.assert_allclose(
            reduced(x, name, lambda e: e * 1), expected, rtol=2e-5
        )  # of an expression


@pytest.mark.parametrize("name", ["max", "min", "sum"])
def test_nothing_of_the_next_row_is_seen(name):
    for n in LENGTHS:
        x = np.zeros((5, n), np.float32)
        x[1::2] = [[np.nan], [np.inf if name != "min" else -np.inf]]
        got = reduced(x, name)
        assert (got[::2] == 0).all()
        assert np.isnan(got[1])
        assert np.isinf(got[3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_at_each_place_of_a_row(name, dtype):
    for n in LENGTHS:
        x = np.random.default_rng(n).standard_normal((2 * n, n)).astype(dtype)
        x[np.arange(n), np.arange(n)] = np.nan
        np.testing.assert_array_equal(reduced(x, name), REDUCERS[name](x, axis=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_short_rows_are_those_of_longer_ones_with_zeros(dtype):
    x = np.random.default_rng(5).standard_normal((37, 65)).astype(dtype)
    for n in LENGTHS[:-1]:
        x[:, n:] = 0
        x[:, :n] = np.random.default_rng(n).standard_normal((37, n))
        np.testing.assert_array_equal(reduced(x[:, :n].copy(), "sum"), reduced(x, "sum"))


def test_rows_without_elements():
    x = np.empty((3, 0), np.float32)
    assert (reduced(x, "sum") == 0).all()
    assert (reduced(x, "max") == -np.inf).all()


def text_of(shape, axes):
    """The code of a sum for AVX-512."""
    value = reduce(Buffer(shape, dt.float32, address=4096), "sum", axes)
    dest = Buffer(value.shape, dt.float32, address=1 << 20)
    (nests,) = nests_of([Store(dest, "saveto", value)])
    return cpu.write(nests, TARGETS["x86-64-v4"])


def test_a_fold_that_runs_once_has_no_code_for_short_rows():
    few = "masked.load.v4f32"
    assert few in text_of((8, 9), (1,))
    assert few not in text_of((9,), (0,))


def test_nothing_is_optimised_of_what_hands_out_tasks():
    lines = text_of((9,), (0,)).splitlines()
    heads = [x for x in lines if x.startswith("define ") and "@phase" not in x]
    assert len(heads) == 3  # the kernel, and the tasks of its two phases
    assert all(" optnone " in head for head in heads)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_much_work_are_those_of_longer_rows_with_zeros(dtype):
    """Of a row in one register, of one whose end goes by registers, and of whole steps."""
    rng = np.random.default_rng(5)
    for n in LENGTHS[:-1]:
        x = np.full((37, 129), -np.inf, dtype)
        x[:, :n] = rng.standard_normal((37, n))
        got = reduced(x[:, :n].copy(), "sum", fn.exp)
        np.testing.assert_array_equal(got, reduced(x, "sum", fn.exp))
        np.testing.assert_allclose(got, np.exp(x[:, :n]).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("change", [lambda x: x, lambda x: x * 2 + 1])
def test_the_place_of_the_largest_is_each(change, dtype):
    for n in (*LENGTHS, 300):
        x = np.zeros((n, n), dtype)
        x[np.arange(n), np.arange(n)] = 1
        got = np.empty(n, np.int64)
        value = Buffer(x.shape, dt.of(dtype), None, x.ctypes.data, x)
        dest = Buffer(got.shape, dt.int64, None, got.ctypes.data, got)
        store(dest, "saveto", arg_reduce(change(value), "max", 1))
        np.testing.assert_array_equal(got, np.arange(n))
