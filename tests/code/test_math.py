"""The functions of `gnomon.code.math`: errors in ulp over the whole range, and the edges.

`BOUND` states them. float32 is measured against float64, float64 against long double or recorded
values.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import special

from gnomon import dtype as dt
from gnomon.code.math import RULES, expand
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.expr.term import Arena
from tests.code.terms import compute, expanded, ulps, walk, worst

# the greatest error in ulp; of digamma and gammaln in ulp of max(1, |value|), since they have zeros
BOUND = {
    "arccos": 1.5, "arcsin": 2, "arctan": 2, "arctan2": 2, "cbrt": 1, "cos": 2, "cosh": 1.5,
    "cospi": 2, "digamma": 6, "erf": 3, "erfinv": 3, "exp": 1, "exp2": 1.5, "expm1": 1.5,
    "gamma": 8, "gammaln": 6, "gelu": 4, "gelu_slope": 4, "log": 1, "log10": 2, "log1p": 1.5,
    "log2": 2, "pow": 1.5,
    "scalb": 0.5, "sin": 2, "sinh": 2, "sinpi": 2, "tan": 2, "tanh": 2, "trigamma": 8,
}  # fmt: skip
RANGES = {
    "arccos": [(-1, 1), (0.9, 1), (-1, -0.9)],
    "arcsin": [(-1, 1), (-0.01, 0.01), (0.9, 1)],
    "arctan": [(-1, 1), (-20, 20)],
    "cbrt": [(-2, 2), (0, 1e6)],
    "cos": [(-4, 4), (1.5, 1.6), (-1e5, 1e5), (1e5, 1e9)],
    "cosh": [(-2, 2), (-95, 95), (-715, 715)],
    "cospi": [(-1, 1), (-100, 100)],
    "erf": [(-1, 1), (0.9, 4.5), (-0.01, 0.01)],
    "erfinv": [(-1, 1), (0.99, 1)],
    "exp": [(-1, 1), (-110, 95), (-750, 712)],
    "exp2": [(-1, 1), (-160, 130), (-1080, 1030)],
    "expm1": [(-1, 1), (-0.01, 0.01), (-20, 95), (-50, 715)],
    "gamma": [(0, 3), (3, 36), (-5, 0), (-30, -5)],
    "gammaln": [(0, 3), (3, 100), (-5, 0)],
    "gelu": [(-3, 3), (3, 9), (-13, -3), (-37, 9)],
    "gelu_slope": [(-3, -1), (-5, -3), (-0.5, 3), (3, 9), (-13, -3), (-37, -1)],
    "digamma": [(0, 3), (3, 100), (-5, 0)],
    "trigamma": [(0, 3), (3, 100), (-5, 0)],
    "log": [(0, 10), (0.5, 2), (0.99, 1.01), (0, 1e30)],
    "log10": [(0, 10), (0.5, 2), (0.99, 1.01), (0, 1e30)],
    "log1p": [(-1, 1), (-0.01, 0.01), (0, 1e9), (0, 1e30)],
    "log2": [(0, 10), (0.5, 2), (0.99, 1.01), (0, 1e30)],
    "sin": [(-4, 4), (3.1, 3.2), (-1e5, 1e5), (1e5, 1e9)],
    "sinh": [(-2, 2), (-0.1, 0.1), (-95, 95), (-715, 715)],
    "sinpi": [(-1, 1), (-100, 100)],
    "tan": [(-2, 2), (1.5, 1.6), (-1e5, 1e5), (1e5, 1e9)],
    "tanh": [(-1, 1), (-10, 10), (-25, 25), (-1e-3, 1e-3)],
}  # fmt: skip
RECORDED = dict(np.load(Path(__file__).with_name("special.npz")))
WIDE = {
    "cospi": PRIMITIVES["cospi"].numpy,
    "digamma": special.digamma,
    "erf": special.erf,
    "erfinv": special.erfinv,
    "gamma": special.gamma,
    "gammaln": special.gammaln,
    "gelu": PRIMITIVES["gelu"].numpy,
    "gelu_slope": PRIMITIVES["gelu_slope"].numpy,
    "sinpi": PRIMITIVES["sinpi"].numpy,
    "trigamma": lambda x: special.polygamma(1, x),
}
EDGES = [0.0, 1, 0.5, 2, np.inf, np.nan]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def reference(name):
    return WIDE.get(name) or getattr(np, name)


def random_bits(dtype, count=20000, seed=0):
    kind = np.int32 if dtype == np.float32 else np.int64
    info = np.iinfo(kind)
    return np.random.default_rng(seed).integers(info.min, info.max, count, kind).view(dtype)


def bits_for(name, dtype, count):
    """Numbers of any bits; those where gelu's slope is 0 have a test of their own."""
    x = random_bits(dtype, count)
    return x[~((x > -1) & (x < -0.5))] if name == "gelu_slope" else x


def edges(dtype):
    info = np.finfo(dtype)
    small = [info.max, info.tiny, info.smallest_subnormal]
    return np.array([s * v for v in [*EDGES, *small] for s in (1, -1)], dtype)


def test_every_function_has_a_bound_and_ranges():
    assert set(BOUND) | {"fmod"} == set(RULES)  # which is exact: see test_remainder.py
    assert set(RANGES) | {"arctan2", "pow", "scalb"} == set(BOUND)


@pytest.mark.parametrize("name", RANGES)
def test_float32_against_float64(name):
    rng = np.random.default_rng(1)
    count = 1500 if name in ("digamma", "trigamma") else 20000  # SciPy takes its time
    for low, high in RANGES[name]:
        x = rng.uniform(low, high, count).astype(np.float32)
        assert worst(name, reference(name), [x]) <= BOUND[name], (low, high)
    assert worst(name, reference(name), [bits_for(name, np.float32, count)]) <= BOUND[name]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tanh_to_two_ulp(dtype):
    rng = np.random.default_rng(7)
    for x in (np.exp(rng.uniform(-14, 3, 300_000)), rng.uniform(0.17, 0.26, 300_000)):
        assert worst("tanh", np.tanh, [x.astype(dtype)]) <= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_slope_of_gelu_beside_its_root(dtype):
    x = np.random.default_rng(8).uniform(-1, -0.5, 20_000).astype(dtype)
    want = reference("gelu_slope")(x.astype(np.float64))
    assert np.max(np.abs(compute("gelu_slope", x) - want)) <= np.finfo(dtype).eps


@pytest.mark.parametrize("name", sorted(set(RANGES) - set(RECORDED)))
def test_float64_against_long_double(name):
    rng = np.random.default_rng(2)
    for low, high in RANGES[name]:
        x = rng.uniform(low, high, 8000)
        assert worst(name, reference(name), [x]) <= BOUND[name], (low, high)
    assert worst(name, reference(name), [bits_for(name, np.float64, 8000)]) <= BOUND[name]


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_float64_against_recorded_values(name):
    x, high, low = RECORDED[name]
    want = high.astype(np.longdouble) + low
    got = compute(name, x)
    if name in ("gammaln", "digamma"):
        error = np.abs(got - want) / np.spacing(np.maximum(1.0, np.abs(high)))
        if name == "digamma":
            assert np.max(error[x > 0]) <= 4
    else:
        error = ulps(got, want)
    assert np.max(error) <= BOUND[name]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(RANGES))
def test_edges(name, dtype):
    x = edges(dtype)
    got = compute(name, x)
    want = np.asarray(PRIMITIVES[name].numpy(x)).astype(dtype)
    digits = 1e-6 if dtype == np.float32 else 1e-14
    least = 1e-15 if name in ("digamma", "gammaln") else 10 * np.finfo(dtype).smallest_normal
    np.testing.assert_allclose(got, want, rtol=digits, atol=least)
    zero = x == 0
    if name not in ("gamma", "digamma"):  # poles, and a matter of convention
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers(dtype):
    rng = np.random.default_rng(3)
    ranges = [(0, 10, 3), (0.9, 1.1, 500), (0, 1e30, 30), (0.99999, 1.00001, 1e7)]
    for low, high, y in ranges:
        x, y = rng.uniform(low, high, 10000), rng.uniform(-y, y, 10000)
        assert worst("pow", np.power, [x.astype(dtype), y.astype(dtype)]) <= BOUND["pow"]
    bits = [random_bits(dtype, 10000, s) for s in (1, 2)]
    assert worst("pow", np.power, bits) <= BOUND["pow"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["pow", "arctan2"])
def test_edges_of_two_arguments(name, dtype):
    v = np.concatenate([edges(dtype), np.array([3, -3, 1.5, -1.5, 2.0**30 + 1, -(2.0**40)], dtype)])
    a, b = (g.ravel() for g in np.meshgrid(v, v))
    got, want = compute(name, a, b), PRIMITIVES[name].numpy(a, b)
    assert np.max(ulps(got, want.astype(np.longdouble))) <= BOUND[name]
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_of_points(dtype):
    rng = np.random.default_rng(4)
    for size in (3.0, 1e-3, 1e30):
        y, x = rng.uniform(-size, size, 10000), rng.uniform(-3, 3, 10000)
        args = [y.astype(dtype), x.astype(dtype)]
        assert worst("arctan2", np.arctan2, args) <= BOUND["arctan2"]
    bits = [random_bits(dtype, 10000, s) for s in (1, 2)]
    assert worst("arctan2", np.arctan2, bits) <= BOUND["arctan2"]


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 170), (np.float64, 1500)])
def test_scaling_by_powers_of_two_is_exact_down_to_denormals(dtype, limit):
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, 5000).astype(dtype)
    n = rng.integers(-limit, limit, 5000).astype(dtype)
    np.testing.assert_array_equal(compute("scalb", x, n), PRIMITIVES["scalb"].numpy(x, n))


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_powers_of_two_have_exact_logarithms(dtype):
    x = np.ldexp(dtype.numpy.type(1), np.arange(-140, 120)).astype(dtype.numpy)
    np.testing.assert_array_equal(compute("log2", x), np.arange(-140, 120))
    np.testing.assert_array_equal(compute("exp2", np.arange(-140, 120).astype(dtype.numpy)), x)


def test_what_a_target_has_itself_is_left_to_it():
    arena = Arena()
    x = arena.arg("x", dt.float32)
    whole = arena.op("exp", x)
    assert expand(whole, frozenset({"exp"})) is whole
    assert "scalb" in {t.op for t in walk(expand(whole, frozenset({"scalb"})))}
    assert "rare" in {t.op for t in walk(expand(arena.op("sin", x), frozenset({"rare"})))}
    assert expand(x) is x


@pytest.mark.parametrize(
    ("name", "most"), [("exp", 22), ("log", 31), ("tanh", 27), ("log2", 31), ("cosh", 24)]
)
def test_how_many_operations_float32_takes(name, most):
    ops = [t.op for t in walk(expanded(name, dt.float32))]
    assert sum(op not in ("const", "arg", "bitcast") for op in ops) <= most
