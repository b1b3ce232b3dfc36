"""Tests of random numbers: whether a generator follows its distribution."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon.base import GnomonError
from gnomon.ground.lock import load_module
from gnomon.test_utils.tolerance import as_numpy

Generator = Callable[[int], Any]


def _statistics() -> Any:
    try:
        return load_module("scipy.stats")
    except ImportError as error:
        raise GnomonError("tests of random numbers need SciPy: pip install scipy") from error


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Intervals of equal probability of a distribution, by its quantile function.

    >>> gen_buckets_probs_with_ppf(lambda p: 2 * p, 2)
    ([(0.0, 1.0), (1.0, 2.0)], [0.5, 0.5])
    """
    edges = [ppf(k / nbuckets) for k in range(nbuckets + 1)]
    return list(itertools.pairwise(edges)), [1 / nbuckets] * nbuckets


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples is within three of its standard errors."""
    mean = as_numpy(generator(nsamples)).astype(np.float64).mean()
    return bool(abs(mean - mu) < 3 * sigma / np.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of normal samples is within three of its standard errors."""
    variance = as_numpy(generator(nsamples)).astype(np.float64).var(ddof=1)
    return bool(abs(variance - sigma**2) < 3 * np.sqrt(2 * sigma**4 / (nsamples - 1)))


def chi_square_check(
    generator: Generator, buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000
) -> tuple[float, Any, Any]:
    """The p-value of samples against the probabilities of buckets, and what was and should be.

    Buckets are all intervals (low, high), or all single values.

    Raises:
        GnomonError: SciPy is not installed.
    """
    if abs(sum(probs) - 1) > 1e-5:
        raise AssertionError(f"chi_square_check: expected probabilities of sum 1, got {sum(probs)}")
    samples = as_numpy(generator(nsamples)).ravel()
    if isinstance(buckets[0], (tuple, list)):
        counts = [int(((samples >= low) & (samples < high)).sum()) for low, high in buckets]
    else:
        counts = [int((samples == value).sum()) for value in buckets]
    wanted = np.array(probs) * nsamples
    observed = np.array(counts)
    missed = nsamples - observed.sum()  # outside of all buckets: as many are missing elsewhere
    statistic = float(((observed - wanted) ** 2 / wanted).sum()) + (missed if missed else 0)
    p = float(_statistics().chi2.sf(statistic, len(observed) - 1))
    return p, observed, wanted.astype(np.int32)


def verify_generator(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """The p-values of `nrepeat` tests; AssertionError unless enough of them are above `alpha`."""
    values = [chi_square_check(generator, buckets, probs, nsamples)[0] for _ in range(nrepeat)]
    passed = sum(p > alpha for p in values)
    if passed < nrepeat * success_rate:
        raise AssertionError(
            f"{passed} of {nrepeat} tests passed, {success_rate:.0%} expected: p-values {values}"
        )
    return values
