"""Expressions on a simulated GPU: every node kind, extension and function as on the processor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon import config
from gnomon import dtype as dt
from gnomon.expr import ext, fn
from gnomon.expr.call import batch_dot, dot
from gnomon.expr.node import Expr, cast
from gnomon.plan.statement import SAVERS, Store
from tests.code.test_targets import extension_cases, functions, softmax
from tests.gpu.moved import both, close, moved, on_cpu, on_gpu, run, there
from tests.plan.test_expressions import SHAPES, expressions, over

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
FLOATS = ("float16", "bfloat16", "float32", "float64")
UNIT = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "float64": 2.3e-16}


def filled(*shape: int, dtype: str = "float32") -> Expr:
    values = np.random.default_rng(sum(shape)).normal(size=shape) * 4
    return over(values.astype(dt.of(dtype).numpy))


NUMBERS = [*FLOATS, "int8", "uint8", "int32", "int64"]


def test_every_extension():
    for e in extension_cases():
        want, got = both(e, "plusto")
        close(got, want, 32 * UNIT.get(e.dtype.name, 0))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_function(dtype):
    for e in functions(dtype):
        want, got = both(e)
        close(got, want, 16 * UNIT.get(e.dtype.name, 0))


@pytest.mark.long
@pytest.mark.timeout(2000)
def test_extensions_and_functions_beside_the_processor():
    """By the formulas that the processor's code has too, so nearer than to NumPy's functions."""
    for e in itertools.chain(extension_cases(), *map(functions, NUMBERS)):
        for saver in ("saveto", "minusto"):
            close(on_gpu(e, saver), on_cpu(e, saver), 4 * UNIT.get(e.dtype.name, 0))


@pytest.mark.parametrize("dtype", [*FLOATS, "bool", "int8", "uint8", "int32", "int64"])
def test_every_dtype_is_folded_and_cast(dtype):
    x = filled(5, 70, dtype=dtype)
    folds = [ext.arg_reduce(x, "max", 1), cast(x, dt.float32), cast(filled(90), x.dtype)]
    if dtype != "bool":
        folds += [ext.reduce(x, how, axes) for how in ("max", "sum") for axes in ((0,), (1,), None)]
    for e in folds:
        want, got = both(e)
        close(got, want, 20 * UNIT.get(e.dtype.name, 0))


@pytest.mark.parametrize("saver", SAVERS)
def test_savers(saver):
    for dtype in ("float32", "float16", "int32"):
        x = fn.abs(filled(6, 9, dtype=dtype)) + 1
        want, got = both(ext.transpose(x), saver)
        close(got, want, UNIT.get(dtype, 0))


def test_row_patterns():
    for shape in ((40, 70), (3, 2000)):
        want, got = both(softmax(filled(*shape)))
        close(got, want, 1e-6)
        np.testing.assert_allclose(got.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 17, 31, 33, 127, 129])
def test_short_rows_are_shared_by_parts_of_a_warp(n):
    for rows in (1, 7, 300):
        x = filled(rows, n)
        for e in (ext.reduce(x, "max", (1,)), ext.arg_reduce(x, "min", 1)):
            want, got = both(e)
            np.testing.assert_array_equal(got, want)
        close(*reversed(both(ext.reduce(x, "sum", (1,)), "plusto")), rtol=1e-6)
        close(*reversed(both(softmax(x))), rtol=1e-6)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 31, 33, 130, 1023, 2600])
def test_rows_are_scanned_by_groups(n, reverse, exclusive):
    """By a part of a warp, a warp, a block; in one piece and several."""
    for rows, dtype in ((1, "int32"), (3, "float64"), (40 if n < 99 else 2, "float32")):
        x = np.random.default_rng(n).integers(-3, 4, (rows, n)).astype(dtype)
        turned = x[:, ::-1] if reverse else x
        want = turned.cumsum(1).astype(dtype) - (turned if exclusive else 0)
        e = ext.scan(over(x), "sum", 1, exclusive, reverse)
        np.testing.assert_array_equal(on_gpu(e), want[:, ::-1] if reverse else want)
        longest = ext.scan(over(x), "max", 1)
        np.testing.assert_array_equal(on_gpu(longest), np.maximum.accumulate(x, 1))


def test_products():
    a, b = filled(5, 7), filled(7, 4)
    close(*reversed(both(dot(a, b))), rtol=1e-6)
    close(*reversed(both(dot(a, ext.transpose(filled(4, 7))) * 2.0, "plusto")), rtol=1e-6)
    close(*reversed(both(batch_dot(filled(3, 5, 7), filled(3, 7, 4)))), rtol=1e-6)


def test_what_reads_its_own_destination():
    """In place where each element is read where it is stored, else by way of a temporary."""
    x = np.arange(12.0).reshape(3, 4)
    dest = moved(over(x))
    run([Store(dest, "saveto", dest * 2.0)])
    np.testing.assert_array_equal(dest.numpy(), x * 2)
    run([Store(dest, "saveto", ext.flip(dest, 1) + 1.0)])
    np.testing.assert_array_equal(dest.numpy(), x[:, ::-1] * 2 + 1)
    square = moved(over(np.arange(9.0).reshape(3, 3)))
    run([Store(square, "plusto", ext.transpose(square))])
    x = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(square.numpy(), x + x.T)


def test_many_arguments():
    """More than an entry may have by value: their words lie in the GPU's memory."""
    total: Expr = over(np.ones(8, np.float32))
    for _ in range(4100):
        total = total + over(np.ones(8, np.float32))
    np.testing.assert_array_equal(both(total)[1], 4101)


def test_several_destinations_at_once():
    x = moved(over(np.arange(5.0)))
    a, b = (moved(over(np.zeros(5))) for _ in range(2))
    run([Store(a, "saveto", x + b), Store(b, "saveto", x * 2.0 + a)])
    np.testing.assert_array_equal(a.numpy(), np.arange(5.0))
    np.testing.assert_array_equal(b.numpy(), np.arange(5.0) * 2)


def same(e: Expr, shape: tuple[int, ...], saver: str) -> None:
    """A random expression, on whole numbers, is the same to the last bit."""
    if 0 in shape:
        return
    with config.using(gpu="simulated"):
        want, got = both(e, saver)
        np.testing.assert_array_equal(got, want)


LOOSE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
SOME = st.sampled_from(["saveto", "plusto", "minusto"])


@settings(max_examples=200, suppress_health_check=LOOSE)
@given(st.data(), SHAPES, SOME)
def test_random_expressions(data, shape, saver):
    same(data.draw(expressions(shape)), shape, saver)


@pytest.mark.long
@pytest.mark.timeout(5000)
@settings(max_examples=5000, suppress_health_check=LOOSE)
@given(st.data(), SHAPES, SOME)
def test_thousands_of_random_expressions(data, shape, saver):
    same(data.draw(expressions(shape)), shape, saver)


def test_the_data_of_these_tests_is_on_the_gpu():
    (x, _) = there(filled(3) * 2.0).children
    assert x.device == "gpu(0)"
    assert len(list(functions("float32"))) > 40
