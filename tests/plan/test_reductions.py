"""Reductions and row patterns: what is counted, what is kept, and how exact sums are."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import config
from gnomon import dtype as dt
from gnomon.code.interp import interpret
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.expr.oracle import evaluate
from gnomon.plan.pipeline import plan
from gnomon.plan.statement import Store, Structure
from gnomon.plan.view import views
from gnomon.runtime.devices import pool
from gnomon.runtime.statements.prepare import prepare
from tests.plan.test_expressions import counts, over, run

SHAPES = [(1, 1), (3, 7), (5, 64), (2, 300), (300, 2), (40, 131), (700, 33), (1, 9000), (9000, 1)]


def normal(shape: tuple[int, ...], dtype: object = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def along(x: Expr, reducer: str, axis: int) -> Expr:
    """A reduction, repeated over the shape of `x`."""
    return ext.broadcast_to(ext.reduce(x, reducer, (axis,), keepdims=True), x.shape)


def softmax(x: Expr, axis: int) -> Expr:
    e = fn.exp(x - along(x, "max", axis))
    return e / along(e, "sum", axis)


def log_softmax(x: Expr, axis: int) -> Expr:
    away = x - along(x, "max", axis)
    return away - fn.log(along(fn.exp(away), "sum", axis))


def layer_norm(x: Expr, axis: int) -> Expr:
    n = x.shape[axis]
    away = x - along(x, "sum", axis) / n
    return away / fn.sqrt(along(away * away, "sum", axis) / n + 1e-5)


def softmax_gradient(x: Expr, axis: int) -> Expr:
    y = softmax(x, axis)
    return y * (x - along(y * x, "sum", axis))


PATTERNS = (softmax, log_softmax, layer_norm, softmax_gradient)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern, axis, shape):
    """Over either axis, into another array, and in place."""
    x = normal(shape)
    want = evaluate(pattern(over(x), axis))
    for dest in (np.zeros_like(x), x):
        run(dest, pattern(over(x), axis))
        np.testing.assert_allclose(dest, want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_patterns_of_other_dtypes(axis, dtype):
    x = normal((40, 131), dtype)
    want = evaluate(softmax(over(x.astype("d")), axis))
    got = run(np.zeros_like(x), softmax(over(x), axis))
    np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == "float16" else 1e-14, atol=1e-7)


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_read_after_it_was_overwritten(axis):
    """x = x * softmax(x) needs x to the end: exponentials must not go where x lies."""
    x = normal((50, 90))
    for form in (lambda s: s * softmax(s, axis), lambda s: softmax(s, axis) - s * 2.0):
        got = x.copy()
        want = evaluate(form(over(x.copy())))
        run(got, form(over(got)))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    y = x.copy()
    run(y, softmax(over(x), axis), "plusto")
    np.testing.assert_allclose(y, x + evaluate(softmax(over(x), axis)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_exponentials_are_computed_once(axis, dtype):
    """One exp an element, wherever they can be kept: in the result, or in a row beside it."""
    x = over(normal((6, 9), dtype))
    expected = 6 * 9 if axis == 1 or dtype == "float32" else 2 * 6 * 9
    e = softmax(x, axis)
    stores = views([Store(over(np.zeros(e.shape, dtype)), "saveto", e)])
    structure = Structure(stores)
    assert interpret(plan(stores, structure), structure)["exp"] == expected


def test_the_whole_softmax_of_a_vector():
    """A single row is shared by threads; its exponentials are kept as well."""
    x = normal((100_000,))
    got = run(np.zeros_like(x), softmax(over(x), 0))
    np.testing.assert_allclose(got, evaluate(softmax(over(x), 0)), rtol=2e-5)
    assert counts(softmax(over(x[:70]), 0))["exp"] == 70


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_temporaries_of_the_size_of_the_data(pattern):
    x = normal((300, 1000))
    dest = np.zeros_like(x)
    for axis in (0, 1):
        before = pool.stats().used
        steps = prepare([Store(over(dest), "saveto", pattern(over(x), axis))])
        assert pool.stats().used - before <= x.nbytes / 30
        assert len(steps) == 1


def test_reductions_of_one_operand_share_its_loop():
    """Sum and sum of squares read every element once."""
    x = over(normal((6, 90)))
    e = ext.reduce(x, "sum", (1,)) * 2.0 + ext.reduce(x * x, "sum", (1,))
    assert counts(e)["read"] == 6 * 90


# -- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["normal", "uniform", "constant"])
@pytest.mark.parametrize("shape", [(3_000_000,), (1_500_000, 2), (30_000, 100), (3, 1_000_000)])
def test_sums_are_exact_enough(shape, fill):
    """Within 1e-6 of the sum of absolute values over any axis."""
    rng = np.random.default_rng(3)
    x = np.full(shape, 0.1, np.float32)
    if fill != "constant":
        x[...] = getattr(rng, fill)(size=shape)
    for axes in [(a,) for a in range(x.ndim)] + [tuple(range(x.ndim))]:
        total = ext.reduce(over(x), "sum", axes)
        got = run(np.zeros(total.shape, np.float32), total)
        size = np.abs(x).sum(axis=axes, dtype=np.float64)
        assert (np.abs(got - x.sum(axis=axes, dtype=np.float64)) <= 1e-6 * size).all()


@pytest.mark.long
def test_a_sum_of_a_hundred_million():
    x = np.random.default_rng(0).random(10**8, np.float32)
    got = run(np.zeros((), np.float32), ext.reduce(over(x), "sum", None))
    assert abs(float(got) / x.sum(dtype=np.float64) - 1) <= 1e-6


@pytest.mark.parametrize("shape", [(300_000,), (2000, 300), (100_000, 3), (3, 100_000)])
def test_sums_do_not_depend_on_the_number_of_threads(shape):
    x = normal(shape)
    for axes in [(a,) for a in range(x.ndim)] + [tuple(range(x.ndim))]:
        total = ext.reduce(over(x), "sum", axes)
        found = []
        for threads in (1, 2, 3, 7):
            with config.using(num_threads=threads):
                found.append(run(np.zeros(total.shape, np.float32), total))
        assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_sums_of_integers_wrap(dtype):
    """They are added in their own dtype, as mshadow does, and as NumPy does when told to."""
    x = np.random.default_rng(0).integers(0, 100, (300, 70)).astype(dtype)
    for axis in (0, 1):
        got = run(np.zeros(x.shape[1 - axis], dtype), ext.reduce(over(x), "sum", (axis,)))
        np.testing.assert_array_equal(got, x.sum(axis, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_half_floats_are_taken_in_float32(dtype):
    x = np.ones((3000, 3), dt.of(dtype).numpy)
    got = run(np.zeros(3, x.dtype), ext.reduce(over(x), "sum", (0,)))
    assert got.astype(np.float32).tolist() == np.full(3, 3000).astype(x.dtype).tolist()


# -- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_positions(shape, dtype, which):
    """The first of equals, over either axis, NaN before all."""
    rng = np.random.default_rng(1)
    x = rng.integers(-5, 5, shape).astype(dtype)
    for spoil in (0, 1, 2):
        if np.dtype(dtype).kind == "f" and spoil:
            x[rng.random(shape) < 0.02 * spoil] = np.nan
        for axis in (0, 1):
            e = ext.arg_reduce(over(x), which, axis)
            got = run(np.zeros(e.shape, np.int64), e)
            np.testing.assert_array_equal(got, getattr(x, f"arg{which}")(axis))


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_positions_in_rows_of_one_value(value):
    x = np.full((70, 90), value, np.float32)
    for which in ("max", "min"):
        for axis in (0, 1):
            e = ext.arg_reduce(over(x), which, axis)
            assert not run(np.ones(e.shape, np.int64), e).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((81,), (0,)), ((5, 33), (1,)), ((33, 5), (0,)), ((40, 70), (1,)), ((3, 17, 9), (0, 2)),
     ((3, 17, 9), (1, 2)), ((17, 200), (0,)), ((40_000,), (0,))],
)  # fmt: skip
def test_products_of_floats_have_the_range_of_float64(shape, axes, dtype):
    """Those of a part may overflow float32, and infinity times 0 is no number."""
    count = np.prod([shape[a] for a in axes])
    spread = {"float16": min(3e3, 1e280 ** (1 / count)), "float64": 1e250 ** (1 / count)}
    large = spread.get(dtype, 1e300 ** (2 / (count + 1)))
    values = np.full(shape, large)
    values.reshape(-1)[1::2] = 1 / large
    for start in (1, 0):
        values.reshape(-1)[0] = start
        given = values.astype(dtype)
        expected = np.prod(given, axes, np.longdouble)
        with np.errstate(over="ignore"):
            expected = expected.astype(dtype)
        found = run(np.zeros_like(expected), ext.reduce(over(given), "prod", axes))
        np.testing.assert_allclose(found, expected, rtol={"float16": 1e-3}.get(dtype, 3e-7))
