"""Random draws: repeatable by seed, for any number of threads and engine, and of the right law."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import gnomon as mx
from gnomon import cpu, engine, nd, random, sym
from gnomon.base import ParamError, ShapeError
from gnomon.ops import find
from gnomon.runtime.execution import threads


def draws():
    return [
        random.uniform(shape=(7, 5)).asnumpy(),
        random.normal(2, 3, shape=(11,), dtype="float64").asnumpy(),
        random.uniform(0, 9, shape=(100_000,)).asnumpy(),
    ]


def test_a_seed_repeats_for_any_number_of_threads():
    found, before = [], threads.num_threads()
    for count in (1, 2, 1):
        threads.set_num_threads(count)
        random.seed(11)
        found.append(draws())
    threads.set_num_threads(before)
    random.seed(12)
    other = draws()
    for first, second, third, fourth in zip(*found, other, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, third)
        assert (first != fourth).mean() > 0.9


def test_draws_take_their_numbers_when_they_are_called():
    random.seed(3)
    expected = [random.uniform(shape=(4,)).asnumpy() for _ in range(3)]
    random.seed(3)
    gate, out = threading.Event(), nd.zeros((4,))
    engine.get().push_sync(lambda ctx: gate.wait(10), None, (), [out._var])
    random.uniform(shape=(4,), out=out)  # computed last
    rest = [random.uniform(shape=(4,)) for _ in range(2)]
    gate.set()
    for found, value in zip([out, *rest], expected, strict=True):
        np.testing.assert_array_equal(found.asnumpy(), value)


NEED_NO_ARRAYS = [n for n in nd.random.__all__ if not re.match("pdf_|.*_like$", n)]


@pytest.mark.parametrize("name", sorted({*NEED_NO_ARRAYS} - {"multinomial", "randn", "shuffle"}))
def test_a_name_is_taken_as_by_symbols(name):
    given = {"randint": (0, 5), "negative_binomial": (1, 0.5)}.get(name, ())
    draw, drawn = (getattr(place, name) for place in (nd.random, sym.random))
    assert draw(*given, shape=(2,), name="x").shape == (2,)
    assert drawn(*given, shape=(2,), name="x").name == "x"


def test_a_name_is_taken_by_other_draws():
    assert nd.random.randn(2, name="x").shape == (2,)
    assert nd.random.multinomial(nd.array([0.5, 0.5]), shape=3, name="x").shape == (3,)
    assert nd.random.normal(nd.zeros((2,)), nd.ones((2,)), name="x").shape == (2,)


@pytest.mark.parametrize("length", [1, 2, 7, 64, 1000])
def test_places_by_weights(length):
    """Each as often as its weight says; never one of weight 0, whatever is left over at the end."""
    weights = np.random.default_rng(length).uniform(size=(2, length))
    weights[:, ::3] = 0 if length > 1 else 1
    weights /= weights.sum(1, keepdims=True)
    drawn, logs = nd.random.multinomial(nd.array(weights), shape=(100, 300), get_prob=True)
    for row, places, chances in zip(weights, drawn.asnumpy(), logs.asnumpy(), strict=True):
        counts = np.bincount(places.ravel(), minlength=length)
        deviation = np.sqrt(row * (1 - row) * places.size)
        assert (abs(counts - row * places.size) <= 6 * deviation + 1e-9).all()
        np.testing.assert_allclose(chances, np.log(row[places]), rtol=1e-5)
    assert find("_sample_multinomial").is_expression


def test_calls_that_fit_no_signature_name_the_function():
    wrong = r"random\.uniform: argument 'shap': .* did you mean 'shape'"
    for draw in (nd.random.uniform, random.uniform):
        with pytest.raises(ParamError, match=wrong):
            draw(shap=(2,))
        with pytest.raises(TypeError, match=r"random\.uniform: multiple values .*'low'"):
            draw(0, 1, low=0)


def test_devices_draw_apart():
    random.seed(5)
    first = [random.uniform(shape=(9,), ctx=cpu(k)).asnumpy() for k in range(2)]
    assert (first[0] != first[1]).all()
    random.seed(5, ctx=cpu(1))
    np.testing.assert_array_equal(random.uniform(shape=(9,), ctx=cpu(1)).asnumpy(), first[1])


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda n: random.uniform(-1, 3, shape=n), 1, 4 / 12**0.5),
        (lambda n: random.normal(2, 3, shape=n), 2, 3),
        (lambda n: random.normal(0, 1, shape=n, dtype="float64"), 0, 1),
        (lambda n: random.exponential(2, shape=n), 2, 2),
        (lambda n: random.randint(0, 10, shape=n), 4.5, 99**0.5 / 12**0.5),
        (lambda n: random.randn(*n, loc=1), 1, 1),
    ],
)
def test_laws(draw, mean, deviation):
    random.seed(1)
    values = draw((400, 500)).asnumpy()
    assert abs(values.mean() - mean) < 0.02 * max(1, deviation)
    assert abs(values.std() - deviation) < 0.02 * deviation
    rows = values[::2].ravel() - values.mean(), values[1::2].ravel() - values.mean()
    assert abs((rows[0] * rows[1]).mean()) < 0.02 * deviation**2


def test_shapes_dtypes_and_out():
    assert random.uniform().shape == (1,)
    assert random.uniform(shape=3).shape == (3,)
    assert random.normal(shape=(2, 3), dtype="float64").dtype is np.float64
    assert random.randint(0, 5, shape=(4,)).dtype is np.int32
    out = nd.zeros((3, 2), dtype="float16")
    assert random.normal(0, 1, out=out) is out
    assert out.asnumpy().any()
    values = random.randint(3, 5, shape=(1000,)).asnumpy()
    assert set(values.tolist()) == {3, 4}
    assert nd.random.uniform(0, 1, (2, 2)).shape == (2, 2)
    assert nd.random.uniform_like(nd.zeros((2, 5))).shape == (2, 5)


def test_bad_seeds_and_ranges():
    with pytest.raises(ParamError, match="seed_state"):
        random.seed("x")
    with pytest.raises(ParamError, match="high"):
        random.uniform(3, 1)
    with pytest.raises(ParamError, match="scale"):
        random.normal(0, -1)
    with pytest.raises(ParamError, match=r"'lam': expected a finite number above 0, got -1"):
        nd.random_exponential(lam=-1.0, shape=(1,))
    with pytest.raises(ParamError, match="'lam'"):
        random.exponential(-1.0)


def test_no_successes_to_wait_for_take_no_failures():
    assert nd.random.negative_binomial(0, 0.5, shape=(3,)).asnumpy().tolist() == [0, 0, 0]
    drawn = nd.random.negative_binomial(nd.array([0.0, -1.0]), nd.array([0.5, 0.5])).asnumpy()
    assert drawn[0] == 0 and np.isnan(drawn[1])


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "randint"])
def test_a_shape_without_elements_or_axes_is_meant_as_it_is(name):
    numbers = (0, 9) if name == "randint" else ()
    draw = getattr(nd.random, name)
    for shape in ((0, 4), (3, 0), ()):
        drawn = draw(*numbers, shape=shape)
        assert drawn.shape == drawn.asnumpy().shape == shape
    with pytest.raises(ParamError, match="dtype"):
        draw(*numbers, shape=(0,), dtype="int99")


ALIKE = [
    ("exponential_like", {"lam": 2.0}, 0.5),
    ("gamma_like", {"alpha": 2.0, "beta": 0.5}, 1.0),
    ("poisson_like", {"lam": 3.0}, 3.0),
    ("negative_binomial_like", {"k": 3, "p": 0.5}, 3.0),
    ("generalized_negative_binomial_like", {"mu": 2.0, "alpha": 0.5}, 2.0),
]


@pytest.mark.parametrize(("name", "params", "mean"), ALIKE)
def test_draws_like_an_array(name, params, mean):
    random.seed(3)
    draw = getattr(nd.random, name)
    values = draw(nd.zeros((50, 400)), **params)
    assert abs(values.asnumpy().mean() - mean) < 0.1 * mean
    assert (values.shape, values.dtype) == ((50, 400), np.float32)
    assert draw(nd.zeros((2,), dtype="float64")).dtype is np.float64
    made = getattr(sym.random, name)(sym.Variable("a"), **params)
    assert made.name == f"{name}0"
    assert made.eval(ctx=cpu(), a=nd.zeros((2, 3)))[0].shape == (2, 3)


#: parameters as arrays, with the means and variances of what is drawn
BY_ARRAYS = {
    "uniform": (([0, 1], [0.5, 3]), [0.25, 2], [1 / 48, 1 / 3]),
    "normal": (([0.5, 3], [2, 0.5]), [0.5, 3], [4, 0.25]),
    "exponential": (([0.5, 3],), [0.5, 3], [0.25, 9]),
    "gamma": (([0.5, 3], [2, 0.5]), [1, 1.5], [2, 0.75]),
    "poisson": (([5, 30],), [5, 30], [5, 30]),
    "negative_binomial": (([0.5, 3], [0.5, 0.25]), [0.5, 9], [1, 36]),
    "generalized_negative_binomial": (([0.5, 3], [2, 0]), [0.5, 3], [1, 3]),
}


@pytest.mark.parametrize("name", BY_ARRAYS)
def test_draws_by_arrays(name):
    given, mean, variance = BY_ARRAYS[name]
    arrays = [nd.array(values) for values in given]
    function = getattr(mx.random, name)
    mx.random.seed(7)
    drawn = function(*arrays, shape=(100, 200))
    assert drawn.shape == (2, 100, 200) and drawn.dtype is np.float32
    values = drawn.asnumpy().astype(np.float64)
    np.testing.assert_allclose(values.mean((1, 2)), mean, rtol=0.05)
    np.testing.assert_allclose(values.var((1, 2)), variance, rtol=0.1)
    mx.random.seed(7)
    assert (function(*arrays, shape=(100, 200)).asnumpy() == drawn.asnumpy()).all()
    assert function(*arrays).shape == (2,)
    assert function(*arrays, shape=3, dtype="float64").dtype is np.float64


def test_draws_by_arrays_are_nan_where_there_is_no_distribution():
    assert np.isnan(mx.random.gamma(nd.array([-1, 0, 1]), nd.array([1, 1, 0])).asnumpy()).all()
    assert np.isnan(mx.random.poisson(nd.array([-1])).asnumpy()).all()
    assert np.isnan(mx.random.exponential(nd.array([-1])).asnumpy()).all()


def test_draws_by_symbols():
    loc, scale = mx.sym.var("loc"), mx.sym.var("scale")
    drawn = mx.sym.random.normal(loc, scale, shape=(4,))
    assert drawn.infer_shape(loc=(3,))[1] == [(3, 4)]
    found = drawn.eval(loc=nd.array([1, 2]), scale=nd.zeros((2,)))[0]
    assert found.asnumpy().tolist() == [[1] * 4, [2] * 4]


def test_draws_by_arrays_are_refused():
    with pytest.raises(TypeError, match="all arrays or all numbers"):
        mx.random.normal(nd.ones((2,)), 1)
    with pytest.raises(TypeError, match=r"random\.randint: .*expected numbers"):
        mx.random.randint(nd.zeros((2,)), nd.ones((2,)))
    with pytest.raises(ShapeError, match="_sample_uniform"):
        mx.random.uniform(nd.zeros((2,)), nd.zeros((3,)))
