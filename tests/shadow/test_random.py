"""Random: distributions by statistics, streams, fusion, errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gnomon.base import DTypeError, ParamError, ShapeError
from gnomon.expr.oracle import evaluate
from gnomon.plan.ir import Fold
from gnomon.plan.pipeline import plan
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.execution import threads
from gnomon.shadow import Random, Tensor, TensorContainer, scalar, tcast

N = 40_000


def drawn(name, *parameters, dtype="float64", n=N, seed=11) -> np.ndarray:
    dest = TensorContainer((n,), dtype)
    getattr(Random(seed=seed), name)(dest, *parameters)
    return dest.numpy().astype(np.float64)


@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (7,), (3, 4)])
def test_draws_beside_a_number_that_is_converted(shape):
    drawn, plain = TensorContainer(shape), TensorContainer(shape)
    drawn[:] = Random(seed=1).uniform(shape) * tcast("float32", scalar(2, "int32"))
    plain[:] = Random(seed=1).uniform(shape)
    np.testing.assert_array_equal(drawn.numpy(), plain.numpy() * 2)


CONTINUOUS = {
    "uniform": ("sample_uniform", (-2.0, 3.0), stats.uniform(-2, 5)),
    "gaussian": ("sample_gaussian", (1.5, 0.5), stats.norm(1.5, 0.5)),
    "exponential": ("sample_exponential", (2.5,), stats.expon(scale=0.4)),
    "gamma 0.3": ("sample_gamma", (0.3, 2.0), stats.gamma(0.3, scale=2)),
    "gamma 1": ("sample_gamma", (1.0, 1.0), stats.gamma(1)),
    "gamma 7.5": ("sample_gamma", (7.5, 0.5), stats.gamma(7.5, scale=0.5)),
}
DISCRETE = {
    "poisson 0": ("sample_poisson", (0.0,), stats.poisson(0)),
    "poisson 0.7": ("sample_poisson", (0.7,), stats.poisson(0.7)),
    "poisson 9.9": ("sample_poisson", (9.9,), stats.poisson(9.9)),
    "poisson 10": ("sample_poisson", (10.0,), stats.poisson(10)),
    "poisson 300": ("sample_poisson", (300.0,), stats.poisson(300)),
    "negative binomial": ("sample_negative_binomial", (3.0, 0.4), stats.nbinom(3, 0.4)),
    "generalized": (
        "sample_generalized_negative_binomial",
        (12.0, 0.25),
        stats.nbinom(4, 4 / (4 + 12)),
    ),
}


@pytest.mark.parametrize("case", CONTINUOUS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_continuous(case, dtype):
    name, parameters, law = CONTINUOUS[case]
    x = drawn(name, *parameters, dtype=dtype)
    assert stats.kstest(x, law.cdf).pvalue > 1e-3
    assert abs(x.mean() - law.mean()) < 5 * law.std() / N**0.5
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.025


@pytest.mark.parametrize("case", DISCRETE)
def test_discrete(case):
    name, parameters, law = DISCRETE[case]
    x = drawn(name, *parameters, dtype="float32")
    assert (x == np.floor(x)).all()
    edges = np.unique(law.ppf(np.linspace(0.02, 0.98, 25)))
    seen = np.histogram(x, [-1, *edges + 0.5, np.inf])[0]
    share = np.diff([0, *law.cdf(edges), 1])
    keep = share * N > 5
    chi = ((seen - share * N)[keep] ** 2 / (share * N)[keep]).sum()
    assert stats.chi2(max(1, keep.sum() - 1)).sf(chi) > 1e-3
    assert seen[~keep].sum() <= 40


def test_integers():
    x = drawn("get_rand_int", dtype="int64")
    assert x.min() >= 0
    assert 0.99 * 2**32 < x.max() < 2**32
    small = drawn("get_rand_int", dtype="uint8")
    assert set(small) == set(range(256))
    signed = drawn("get_rand_int", dtype="int32")
    assert abs(signed.mean()) < 2**31 * 0.02
    assert signed.min() < -0.99 * 2**31


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_are_equally_likely(dtype):
    x = drawn("get_rand_int", dtype=dtype)
    low, high = (0, 2**32) if dtype == "int64" else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    seen = np.histogram(x, np.linspace(low, high, 65))[0]
    assert stats.chisquare(seen).pvalue > 1e-3
    neighbours = np.histogram2d(x[:-1:2], x[1::2], 8, [[low, high]] * 2)[0]
    assert stats.chisquare(neighbours.ravel()).pvalue > 1e-3


KNOWN = [  # the numbers of a seed stay what they are, from version to version
    ("uniform", (), [0.5182369947, 0.8287540674, 0.3627815843, 0.1386862397]),
    ("gaussian", (), [0.5444869399, -1.0090487003, 0.9167478085, 1.0897165537]),
    ("exponential", (2.5,), [0.2921212018, 0.7058618069, 0.1802571118, 0.0597185716]),
    ("gamma", (0.3, 2.0), [1.1916185617, 0.0140729379, 0.1006311253, 1.2672424316]),
    ("gamma", (7.5, 0.5), [4.3626737595, 2.6357018948, 3.2091603279, 5.4379448891]),
    ("poisson", (0.7,), [1, 0, 1, 0]),
    ("poisson", (300.0,), [301, 269, 342, 299]),
    ("negative_binomial", (3.0, 0.4), [6, 3, 3, 9]),
    ("generalized_negative_binomial", (12.0, 0.25), [15, 7, 8, 18]),
    ("integers", ("int32",), [78327380, -589348405, 1392228298, -630279276]),
]


@pytest.mark.parametrize(("name", "parameters", "numbers"), KNOWN)
def test_known_numbers(name, parameters, numbers):
    e = getattr(Random(seed=2024), name)((4,), *parameters)
    out = np.zeros(4, e.dtype.numpy)
    Tensor(out).assign(e)
    np.testing.assert_allclose(out, numbers, rtol=1e-5)
    np.testing.assert_allclose(evaluate(e), numbers, rtol=1e-5)


def test_an_expression_has_one_value_and_fuses():
    rnd = Random(seed=3)
    e = rnd.gaussian((40, 50)) * 0.01
    a, b = TensorContainer((40, 50)), TensorContainer((40, 50))
    a[:] = e
    b[:] = e
    assert (a.numpy() == b.numpy()).all()
    np.testing.assert_allclose(a.numpy(), evaluate(e), rtol=1e-4, atol=1e-7)
    b[:] = rnd.gaussian((40, 50)) * 0.01
    assert not (a.numpy() == b.numpy()).any()


def test_kernels_agree_with_the_oracle():
    rnd = Random(seed=9)
    for e in (rnd.gamma((50,), 2.5, dtype="float64"), rnd.poisson((50,), 20.0)):
        out = np.zeros(50, e.dtype.numpy)
        Tensor(out).assign(e)
        np.testing.assert_allclose(out, evaluate(e), rtol=1e-6)


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_trials_are_made_until_one_is_good(name):
    e = getattr(Random(seed=4), name)((300,), 40.0)
    statement = [Store(Tensor(np.zeros(300, np.float32)), "saveto", e)]
    *_, last = plan(statement, Structure(statement)).phases
    assert not last.striped
    assert any(isinstance(s, Fold) for s in last.body)


def test_the_number_of_threads_changes_nothing():
    before = threads.num_threads()
    try:
        threads.set_num_threads(1)
        one = drawn("sample_gamma", 2.0, 1.0, dtype="float32")
        threads.set_num_threads(3)
        three = drawn("sample_gamma", 2.0, 1.0, dtype="float32")
    finally:
        threads.set_num_threads(before)
    assert (one == three).all()


def test_streams_are_saved_and_split():
    rnd = Random(seed=2**63 + 5)
    drawn_first = evaluate(rnd.uniform((5,)))
    saved = rnd.state
    then = evaluate(rnd.uniform((5,)))
    again = Random()
    again.state = saved
    assert (evaluate(again.uniform((5,))) == then).all()
    assert not (drawn_first == then).any()
    children = Random(seed=1).split(3)
    same = Random(seed=1).split(3)
    assert [c.state for c in children] == [c.state for c in same]
    rows = [evaluate(c.gaussian((10_000,))) for c in children]
    assert abs(np.corrcoef(rows) - np.eye(3)).max() < 0.04


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("sample_uniform", (2.0, 1.0), "at least low"),
        ("sample_gaussian", (0.0, -1.0), "sigma"),
        ("sample_gamma", (0.0, 1.0), "alpha"),
        ("sample_exponential", (-1.0,), "lam"),
        ("sample_poisson", (-1.0,), "at least 0"),
        ("sample_negative_binomial", (1.0, 1.5), "at most 1"),
        ("sample_generalized_negative_binomial", (-1.0, 1.0), "mu"),
    ],
)
def test_bad_parameters_leave_the_destination(name, parameters, words):
    dest = TensorContainer((3,), init=7.0)
    with pytest.raises(ParamError, match=words):
        getattr(Random(), name)(dest, *parameters)
    assert dest.numpy().tolist() == [7, 7, 7]


def test_means_that_are_none():
    means = Tensor(np.array([-3.0, np.nan, -0.0, 5.0, 500.0], np.float32))
    drawn, rnd = TensorContainer((5,)), Random()
    drawn[:] = rnd.poisson((5,), means)
    assert np.isnan(drawn.numpy()).tolist() == [True, True, False, False, False]
    assert drawn.numpy()[2] == 0
    before = rnd.state
    with pytest.raises(ShapeError, match=r"poisson: argument 'lam': expected shape \(2,\)"):
        rnd.poisson((2,), means)
    assert rnd.state == before


def test_bad_dtypes_and_states():
    with pytest.raises(DTypeError, match="a floating type"):
        Random().sample_uniform(TensorContainer((3,), "int32"))
    with pytest.raises(DTypeError, match="an integer type"):
        Random().get_rand_int(TensorContainer((3,)))
    with pytest.raises(ParamError, match="position"):
        Random().state = (1, -1)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (7,), (2, 3, 5), (1001,)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_every_shape_has_the_numbers_of_the_flat_sequence(shape, dtype):
    for name in ("uniform", "gaussian"):
        e = getattr(Random(seed=21), name)(shape, dtype)
        out = np.zeros(shape, e.dtype.numpy)
        Tensor(out).assign(e)
        flat = evaluate(getattr(Random(seed=21), name)((out.size,), dtype))
        np.testing.assert_allclose(out.ravel(), flat, rtol=2e-3, atol=1e-6)


def test_both_numbers_of_a_pair_are_independent():
    x = drawn("sample_gaussian", dtype="float32", n=400_000)
    first, second = x[::2], x[1::2]
    for a, b in ((first, second), (abs(first), abs(second)), (first**2, second)):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.012
    seen = np.histogram2d(stats.norm.cdf(first), stats.norm.cdf(second), 10, [[0, 1]] * 2)[0]
    assert stats.chisquare(seen.ravel()).pvalue > 1e-4


@pytest.mark.long
@pytest.mark.parametrize("case", [*CONTINUOUS, *DISCRETE])
@pytest.mark.parametrize("seed", [1, 2**40 + 3, 2**63 + 9])
def test_distributions_at_length(case, seed):
    """A million numbers: moments, the distribution function, neighbours at several distances."""
    name, parameters, law = {**CONTINUOUS, **DISCRETE}[case]
    n = 1_000_000
    x = drawn(name, *parameters, dtype="float32", n=n, seed=seed)
    mean, variance, skew, excess = map(float, law.stats("mvsk"))
    if not variance:
        assert (x == mean).all()
        return
    z = (x - mean) / variance**0.5
    assert abs(z.mean()) < 5 / n**0.5
    assert abs(z.var() - 1) < 5 * ((excess + 2) / n) ** 0.5
    assert abs((z**3).mean() - skew) < 0.05 * (1 + abs(skew)) * (3 + excess)
    if case in CONTINUOUS:
        assert stats.kstest(x, law.cdf).pvalue > 1e-4
    for distance in (1, 2, 3, 1000, 1 << 16):
        assert abs(np.corrcoef(z[:-distance], z[distance:])[0, 1]) < 5 / n**0.5


@pytest.mark.long
def test_streams_at_length_are_independent():
    streams = [Random(seed=5), Random(seed=6), *Random(seed=5).split(4)]
    rows = []
    for stream in streams:
        row = TensorContainer((500_000,))
        row[:] = stream.gaussian(row.shape)
        rows.append(row.numpy())
    assert abs(np.corrcoef(rows) - np.eye(len(rows))).max() < 5 / 500_000**0.5


def test_streams_beyond_a_million_are_refused():
    with pytest.raises(ParamError, match="split: argument 'count': expected at most 1048576"):
        Random().split(10**9)


@pytest.mark.parametrize("mean", [1e16, 1e30, 1e300])
def test_means_whose_neighbours_are_far(mean):
    drawn = TensorContainer((1000,), "float64")
    Random(seed=5).sample_poisson(drawn, mean)
    share = drawn.numpy() / mean
    assert abs(share - 1).max() < 1e-6
