"""Kernels against oracle and interpreter: random expressions, layouts, savers and overlaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError
from gnomon.code.interp import interpret
from gnomon.expr import ext, fn
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.expr.oracle import evaluate
from gnomon.plan.pipeline import plan
from gnomon.plan.statement import Store, Structure
from gnomon.plan.view import views
from gnomon.runtime.statements.prepare import prepare

SAVERS = {
    "saveto": lambda old, new: new,
    "plusto": lambda old, new: old + new,
    "minusto": lambda old, new: old - new,
    "multo": lambda old, new: old * new,
    "divto": lambda old, new: old / new,
}
# exact on whole numbers in float64, so that kernel and oracle must agree to the last bit
UNARY = ("abs", "square", "neg", "relu", "floor", "sign")
BINARY = ("add", "sub", "mul", "maximum", "minimum", "lt", "eq")
SMOOTH = ("tanh", "sigmoid", "softsign")


def over(array: np.ndarray) -> Buffer:
    """A leaf over an array's memory."""
    strides = [s // array.itemsize for s in array.strides]
    return Buffer(array.shape, dt.of(array.dtype), strides, array.ctypes.data, array)


def run(dest: np.ndarray, e: Expr, saver: str = "saveto") -> np.ndarray:
    """`dest saver e`, compiled."""
    for step in prepare([Store(over(dest), saver, e)]):
        step.run()
    return dest


def compare(e: Expr, saver: str = "saveto", rtol: float = 1e-5) -> None:
    """The kernel, the interpreter and the oracle give the same."""
    wide = np.float64 if e.dtype.kind == "f" else e.dtype.numpy
    start = np.full(e.shape, 2, e.dtype.numpy)
    want = SAVERS[saver](start.astype(wide), evaluate(e).astype(wide))
    got = run(start.copy(), e, saver)
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
    np.testing.assert_allclose(got.astype(wide), want, rtol=rtol, atol=rtol * scale)


@st.composite
def arrays(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    """An array of `shape`: dense, strided, reversed, transposed or repeated in memory."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["dense", "strided", "reversed", "transposed", "repeated"]))

    def fresh(shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(-4, 5, size=shape).astype(np.float64)

    if kind == "strided":
        return fresh(tuple(2 * n for n in shape))[tuple(slice(None, None, 2) for _ in shape)]
    if kind == "reversed":
        return fresh(shape)[tuple(slice(None, None, -1) for _ in shape)]
    if kind == "transposed":
        return fresh(shape[::-1]).T
    if kind == "repeated" and shape:
        return np.broadcast_to(fresh((1, *shape[1:])), shape)
    return fresh(shape)


@st.composite
def expressions(draw: st.DrawFn, shape: tuple[int, ...], depth: int = 4) -> Expr:
    """A random expression of `shape`."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return over(draw(arrays(shape)))
    kind = draw(
        st.sampled_from(
            ["unary", "binary", "number", "where", "flip", "sum", "pad", "slice", "turn"]
        )
    )
    below = expressions(shape, depth=depth - 1)
    if kind == "unary":
        return getattr(fn, draw(st.sampled_from(UNARY)))(draw(below))
    if kind == "binary":
        return getattr(fn, draw(st.sampled_from(BINARY)))(draw(below), draw(below))
    if kind == "number":
        return draw(below) * draw(st.sampled_from([-1.0, 0.5, 2.0])) + 0.5
    if kind == "where":
        return fn.where(draw(below) < 0.25, draw(below), draw(below))
    axis = draw(st.integers(0, len(shape) - 1))
    if kind == "flip":
        return ext.flip(draw(below), axis)
    if kind == "sum":
        reducer = draw(st.sampled_from(["sum", "max", "min"]))
        if 0 in shape and reducer != "sum":
            return draw(below)
        return ext.broadcast_to(ext.reduce(draw(below), reducer, (axis,), keepdims=True), shape)
    if kind == "turn":
        return ext.transpose(draw(expressions(shape[::-1], depth=depth - 1)))
    grown = tuple(n + 3 if a == axis else n for a, n in enumerate(shape))
    if kind == "slice":
        begin = [2 if a == axis else 0 for a in range(len(shape))]
        end = [n - 1 if a == axis else n for a, n in enumerate(grown)]
        return ext.slice_(draw(expressions(grown, depth=depth - 1)), begin, end)
    if shape[axis] < 3:
        return draw(below)
    shrunk = tuple(n - 2 if a == axis else n for a, n in enumerate(shape))
    border = [1 if a == axis else 0 for a in range(len(shape))]
    return ext.pad(draw(expressions(shrunk, depth=depth - 1)), border, border, 0.5)


SHAPES = st.sampled_from(
    [(1,), (7,), (64,), (131,), (3, 17), (5, 1), (2, 3, 20), (4, 0), (1, 1, 67)]
)


@settings(max_examples=60, deadline=None)
@given(st.data(), SHAPES, st.sampled_from(["saveto", "plusto", "minusto", "multo"]))
def test_random_expressions(data: st.DataObject, shape: tuple[int, ...], saver: str) -> None:
    """Whatever the expression, layout and saver: the kernel gives what the oracle gives."""
    e = data.draw(expressions(shape))
    start = np.full(e.shape, 2.0)
    want = SAVERS[saver](start, evaluate(e))
    np.testing.assert_array_equal(run(start.copy(), e, saver), want)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(SMOOTH), min_size=1, max_size=6), st.sampled_from([3, 64, 133]))
def test_random_chains_of_functions(names: list[str], n: int) -> None:
    """Transcendental functions, one over the other, stay within the sum of their error bounds."""
    for dtype, rtol in ((np.float32, 3e-6), (np.float64, 1e-14)):
        x = np.random.default_rng(n).normal(size=n).astype(dtype)
        e: Expr = over(x)
        for name in names:
            e = getattr(fn, name)(e * 1.5 - over(x) * 0.25)
        compare(e, rtol=rtol)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from([(5,), (3, 4), (2, 1, 3)]))
def test_interpreter_agrees(data: st.DataObject, shape: tuple[int, ...]) -> None:
    """The loop nest means what the expression means, element by element."""
    e = data.draw(expressions(shape, depth=3))
    dest = np.zeros(shape)
    stores = views([Store(over(dest), "saveto", e)])
    structure = Structure(stores)
    interpret(plan(stores, structure), structure)
    np.testing.assert_array_equal(dest, evaluate(e))


@pytest.mark.parametrize("saver", SAVERS)
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int8", "uint8", "int64"]
)
def test_dtypes_and_savers(dtype: str, saver: str) -> None:
    """Every dtype, every saver, at sizes around the vector's."""
    for n in (1, 15, 16, 17, 63, 64, 65, 200):
        x = (np.arange(n) % 7 + 1).astype(dt.of(dtype).numpy)
        y = np.ones(n, x.dtype)
        e = over(x) * over(y) + 2
        start = np.full(n, 2, x.dtype)
        got = run(start.copy(), e, saver)
        new = (x.astype(np.float64) + 2).astype(x.dtype)
        want = SAVERS[saver](start.astype(np.float64), new.astype(np.float64))
        want = want.astype(x.dtype) if dt.of(dtype).kind == "f" else np.trunc(want)
        if not (saver == "minusto" and dtype == "uint8"):  # wraps, which float64 does not
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-2)


def test_integer_division_never_traps() -> None:
    """x/0 is 0, INT_MIN/-1 wraps, everything else truncates toward zero."""
    a = np.array([7, -7, 7, -7, 5, np.iinfo(np.int32).min, 0], np.int32)
    b = np.array([2, 2, -2, -2, 0, -1, 0], np.int32)
    got = run(np.zeros(7, np.int32), over(a) / over(b))
    assert got.tolist() == [3, -3, -3, 3, 0, np.iinfo(np.int32).min, 0]


def test_casts_saturate() -> None:
    """Floats to integers: toward zero, to the ends, NaN to 0."""
    x = np.array([1.9, -1.9, 300.0, -300.0, np.inf, -np.inf, np.nan], np.float32)
    assert run(np.zeros(7, np.int8), cast(over(x), dt.int8)).tolist() == [
        1,
        -1,
        127,
        -128,
        127,
        -128,
        0,
    ]
    assert run(np.zeros(7, np.uint8), cast(over(x), dt.uint8)).tolist() == [1, 0, 255, 0, 255, 0, 0]


@pytest.mark.parametrize("n", [1, 5, 100, 20_000, 70_001])
def test_overlap(n: int) -> None:
    """A destination that is also read gives what evaluating the right side first gives."""
    base = np.random.default_rng(n).normal(size=n + 8).astype(np.float32)
    for read, write in (
        (slice(0, n), slice(1, n + 1)),
        (slice(1, n + 1), slice(0, n)),
        (slice(0, n), slice(0, n)),
    ):
        a = base.copy()
        want = a.copy()
        want[write] = a[read] * 2 + a[write]
        run(a[write], over(a[read]) * 2.0 + over(a[write]))
        np.testing.assert_array_equal(a, want)
    a = base.copy()
    run(a[:n], ext.flip(over(a[:n]), 0) + 1.0)
    np.testing.assert_array_equal(a[:n], base[:n][::-1] + 1)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_shifts_in_place_need_no_memory(data: st.DataObject) -> None:
    """A shift along an axis, either way, by any distance, is one kernel that walks in order."""
    shape = data.draw(st.sampled_from([(200,), (9, 30), (3, 5, 17)]))
    axis = data.draw(st.integers(0, len(shape) - 1))
    shift = data.draw(st.integers(1, shape[axis] - 1))
    low = tuple(slice(0, n - shift) if a == axis else slice(None) for a, n in enumerate(shape))
    high = tuple(slice(shift, n) if a == axis else slice(None) for a, n in enumerate(shape))
    for read, write in ((low, high), (high, low)):
        x = np.random.default_rng(shift).integers(-9, 9, size=shape).astype(np.float32)
        want = x.copy()
        want[write] = x[read] * 2 + x[write]
        steps = prepare([Store(over(x[write]), "saveto", over(x[read]) * 2.0 + over(x[write]))])
        assert len(steps) == 1
        steps[0].run()
        np.testing.assert_array_equal(x, want)


def test_shift_beside_a_transposed_operand() -> None:
    """A loop that goes by columns is not in order, so a shift then takes a temporary."""
    x = np.arange(90 * 70, dtype=np.float32).reshape(90, 70)
    y = np.arange(80 * 70, dtype=np.float32).reshape(70, 80).T
    for read, write in ((slice(0, 80), slice(10, 90)), (slice(10, 90), slice(0, 80))):
        a = x.copy()
        want = a.copy()
        want[write] = a[read] + y
        run(a[write], over(a[read]) + over(y))
        np.testing.assert_array_equal(a, want)


def test_transposed_onto_itself() -> None:
    """a[:] = a.T goes through a temporary rather than through itself."""
    a = np.arange(49, dtype=np.float32).reshape(7, 7)
    want = a.T.copy()
    run(a, ext.transpose(over(a)))
    np.testing.assert_array_equal(a, want)


def test_all_values_before_all_stores() -> None:
    """In a group of statements each value is taken from before the group."""
    a, b = np.arange(5, dtype=np.float32), np.arange(5, 10, dtype=np.float32)
    for step in prepare(
        [Store(over(a), "saveto", over(b) * 1.0), Store(over(b), "saveto", over(a) * 1.0)]
    ):
        step.run()
    assert a.tolist() == [5, 6, 7, 8, 9]
    assert b.tolist() == [0, 1, 2, 3, 4]


def test_errors_leave_the_destination() -> None:
    """A value that does not fit is refused before anything is written."""
    dest = np.full((2, 3), 5, np.float32)
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        run(dest, over(np.ones((3, 2), np.float32)) * 1.0)
    with pytest.raises(DTypeError, match="float32"):
        run(dest, over(np.ones((2, 3), np.float64)) * 1.0)
    with pytest.raises(ShapeError, match="share memory"):
        prepare(
            [
                Store(
                    over(np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (3,), (0,))),
                    "saveto",
                    over(np.ones(3, np.float32)),
                )
            ]
        )
    assert (dest == 5).all()


def counts(e: Expr) -> dict[str, int]:
    """How often the planned loops do each operation."""
    dest = np.zeros(e.shape, e.dtype.numpy)
    stores = views([Store(over(dest), "saveto", e)])
    structure = Structure(stores)
    found = interpret(plan(stores, structure), structure)
    np.testing.assert_allclose(dest, evaluate(e), rtol=1e-5, atol=1e-6)
    return found


def test_row_invariant_work_is_hoisted() -> None:
    """Softmax over rows evaluates exp once an element."""
    n, m = 6, 9
    x = over(np.random.default_rng(0).normal(size=(n, m)).astype(np.float32))
    top = ext.broadcast_to(ext.reduce(x, "max", (1,), keepdims=True), (n, m))
    e = fn.exp(x - top)
    total = ext.broadcast_to(ext.reduce(e, "sum", (1,), keepdims=True), (n, m))
    assert counts(e / total)["exp"] == n * m


def test_column_means_are_computed_once() -> None:
    """A mean over the outer axis goes through scratch of its own size."""
    n, m = 6, 9
    x = over(np.random.default_rng(0).normal(size=(n, m)).astype(np.float32))
    mean = ext.reduce(x, "sum", (0,), keepdims=True) * (1 / n)
    found = counts(x - ext.broadcast_to(mean, (n, m)))
    assert found["read"] <= n * m * 2 + m * n


def test_shared_parts_are_computed_once() -> None:
    """40 levels of y = y*y are 40 multiplications an element."""
    x = over(np.full(3, 1.0001, np.float32))
    y: Expr = x
    for _ in range(40):
        y = y * y
    assert counts(y)["mul"] == 40 * 3


def test_forty_levels_and_long_chains_compile() -> None:
    """A deep and a long expression compile without recursion, in time linear in their nodes."""
    x = over(np.full(100, 0.5, np.float32))
    y: Expr = x
    for k in range(6000):
        y = y * 0.5 + x if k % 2 else y - x
    compare(y)


@pytest.mark.long
def test_hundred_thousand_nodes() -> None:
    """An expression of 10^5 nodes."""
    x = over(np.full(100, 0.5, np.float32))
    y: Expr = x
    for k in range(100_000):
        y = y * 0.5 if k % 2 else y - x
    compare(y)


@pytest.mark.parametrize(
    "shape", [(300_000,), (1000, 300), (3, 100_000), (100_000, 3), (50, 60, 70)]
)
def test_large_reductions(shape: tuple[int, ...]) -> None:
    """Sums and extremes over every choice of axes, threads included."""
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    choices = [(a,) for a in range(len(shape))] + [tuple(range(len(shape)))]
    for axes in choices:
        total = ext.reduce(over(x), "sum", axes)
        got = run(np.zeros(total.shape, np.float32), total)
        size = np.abs(x).sum(axis=axes, dtype=np.float64)
        assert (np.abs(got - x.sum(axis=axes, dtype=np.float64)) <= 1e-6 * size).all()
        top = ext.reduce(over(x), "max", axes)
        np.testing.assert_array_equal(run(np.zeros(top.shape, np.float32), top), x.max(axis=axes))
    where = ext.arg_reduce(over(x), "max", len(shape) - 1)
    np.testing.assert_array_equal(run(np.zeros(where.shape, np.int64), where), x.argmax(axis=-1))


def test_the_sum_of_nothing_is_zero() -> None:
    """Not -0, the number that would change nothing, by kernel and oracle alike."""
    total = ext.reduce(over(np.zeros((0, 3), np.float32)), "sum", (0,))
    for got in (run(np.ones(3, np.float32), total), evaluate(total)):
        assert not np.signbit(got).any()
        assert got.tolist() == [0, 0, 0]


def test_the_oracle_keeps_shapes_without_axes() -> None:
    """A full reduction gives an array of no axes."""
    whole = ext.reduce(over(np.ones((2, 3), np.float32)), "sum", None) * 2.0
    assert whole.shape == evaluate(whole).shape == ()
