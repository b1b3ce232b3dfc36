"""Distributions of random numbers, as expressions over numbers that are equally likely, or normal.

Where a distribution needs trials that may fail (gamma, Poisson from a mean of 10), each element has
a fixed number of them and the first that succeeds counts; kernels make no more. Should all fail, as
never happens in 10^20 elements, the mean, or what lies next to it, is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon import dtype as dt
from gnomon.base import DTypeError, ParamError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import fn
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes
from gnomon.expr.ext.broadcast_with_axis import broadcast_with_axis
from gnomon.expr.ext.first import first
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.node import Expr, Scalar, cast

TRIALS, INVERTED = 32, 44


class Distributions:
    """Expressions of random numbers; a subclass says where these come from."""

    def _draw(self, shape: Sequence[int], kind: str, dtype: Any) -> Expr:
        """Numbers of a kind of `Philox`."""
        raise NotImplementedError

    @explained
    def uniform(self, shape: Sequence[int], dtype: Any = dt.default_real) -> Expr:
        """Numbers in [0, 1); raises DTypeError for integers."""
        return self._draw(shape, "uniform", dtype)

    @explained
    def gaussian(self, shape: Sequence[int], dtype: Any = dt.default_real) -> Expr:
        """Normal numbers of mean 0 and variance 1; raises DTypeError for integers."""
        return self._draw(shape, "normal", dtype)

    @explained
    def exponential(
        self, shape: Sequence[int], lam: float = 1.0, dtype: Any = dt.default_real
    ) -> Expr:
        """Numbers of an exponential distribution of rate `lam`; ParamError unless that is > 0."""
        positive("exponential", lam=lam)
        return -fn.log1p(-self.uniform(shape, dtype)) / lam

    @explained
    def gamma(
        self,
        shape: Sequence[int],
        alpha: float | Expr = 1.0,
        beta: float | Expr = 1.0,
        dtype: Any = dt.default_real,
    ) -> Expr:
        """Numbers of a gamma distribution of shape `alpha` and scale `beta`, both > 0: numbers, or
        expressions of `shape` in float64.

        The trials are those of Marsaglia and Tsang (ACM TOMS 26, 2000).

        Raises:
            ParamError: a parameter that is not above 0.
        """
        if isinstance(alpha, Expr) or isinstance(beta, Expr):
            form = alpha if isinstance(alpha, Expr) else constant(alpha, shape, dt.float64)
            return cast(self._gammas(shape, cast(form, dt.float64)) * beta, dt.of(dtype))
        positive("gamma", alpha=alpha, beta=beta)
        if alpha < 1:
            share = fn.power(1.0 - self.uniform(shape, dtype), 1.0 / alpha)
            return self.gamma(shape, alpha + 1.0, beta, dtype) * share
        d = alpha - 1.0 / 3.0
        return self._cubes(shape, d, 1.0 / (9.0 * d) ** 0.5, dtype) * (d * beta)

    def _gammas(self, shape: Sequence[int], alpha: Expr) -> Expr:
        """Numbers of gamma distributions of scale 1, one for each shape in `alpha`."""
        small = alpha < 1.0
        share = fn.power(1.0 - self.uniform(shape, alpha.dtype), 1.0 / alpha)
        d = fn.where(small, alpha + 1.0, alpha) - 1.0 / 3.0
        wide = broadcast_with_axis(d, len(shape) - 1, TRIALS)
        v = self._cubes(shape, wide, fn.rsqrt(wide * 9.0), alpha.dtype)
        return v * d * fn.where(small, share, 1.0)

    def _cubes(self, shape: Sequence[int], d: Any, width: Any, dtype: Any) -> Expr:
        """Cubes of normal numbers around 1, by trials; times `d` they are gamma distributed."""
        trials = (*shape, TRIALS)
        x, u = self._draw(trials, "normal alone", dtype), 1.0 - self.uniform(trials, dtype)
        root = x * width + 1.0
        v = root * root * root
        bound = x * x * 0.5 + d * (1.0 - v + fn.log(fn.maximum(v, 1e-30)))
        good = (v > 0.0) * (fn.log(u) < bound)
        return first(good, v, constant(1.0, shape, v.dtype))

    @explained
    def poisson(
        self, shape: Sequence[int], lam: float | Expr = 1.0, dtype: Any = dt.default_real
    ) -> Expr:
        """Whole numbers of a Poisson distribution of mean `lam`, a number or an expression.

        Means below 10 by inversion, others by the trials of Hoermann (PTRS, 1993). Elements of an
        expression that are no mean, below 0 or NaN, give NaN.

        Raises:
            ParamError: a mean that is not a number of at least 0.
            ShapeError: an expression of another shape.
        """
        if isinstance(lam, Expr):
            sizes, mean = checked_sizes("Random", shape), cast(lam, dt.float64)
            if mean.shape != sizes:
                raise ShapeError(complaint("poisson", "lam", f"shape {sizes}", f"{lam!r}"))
            small = self._inverted(shape, fn.minimum(mean, 10.0))
            large = self._trials(shape, fn.maximum(mean, 10.0))
            drawn = fn.where(mean < 10.0, small, large)
            return cast(fn.where(mean >= 0.0, drawn, float("nan")), dt.of(dtype))
        if not 0 <= lam < float("inf"):
            raise ParamError(complaint("poisson", "lam", "a number of at least 0", lam))
        wide = constant(lam, shape, dt.float64)
        method = self._inverted if lam < 10 else self._trials
        return cast(method(shape, wide), dt.of(dtype))

    def _inverted(self, shape: Sequence[int], mean: Expr) -> Expr:
        """The number of k whose distribution function a uniform number exceeds."""
        u = self.uniform(shape, dt.float64)
        p: Expr = fn.exp(-mean)
        below: Expr = p
        count: Expr = u >= below
        for k in range(1, INVERTED):
            p = p * mean * (1.0 / k)
            below = below + p
            count = count + (u >= below)
        return count

    def _trials(self, shape: Sequence[int], mean: Expr) -> Expr:
        trials = (*shape, TRIALS)
        mu = broadcast_with_axis(mean, len(shape) - 1, TRIALS)
        u = self.uniform(trials, dt.float64) - 0.5
        v = 1.0 - self.uniform(trials, dt.float64)
        b = fn.sqrt(mu) * 2.53 + 0.931
        a = b * 0.02483 - 0.059
        us = 0.5 - fn.abs(u)
        k = fn.floor((2.0 * a / us + b) * u + mu + 0.43)
        sure = (us >= 0.07) * (v <= 0.9277 - 3.6224 / (b - 2.0))
        scale = fn.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b))
        likely = scale <= k * fn.log(mu) - mu - fn.gammaln(fn.maximum(k, 0.0) + 1.0)
        possible = (k >= 0.0) * fn.maximum(us >= 0.013, v <= us)
        good = fn.maximum(sure, possible * likely)
        return first(good, k, fn.floor(mean))

    @explained
    def negative_binomial(
        self, shape: Sequence[int], k: float = 1.0, p: float = 1.0, dtype: Any = dt.default_real
    ) -> Expr:
        """Failures before `k >= 0` successes of probability `p`; ParamError unless 0 < p <= 1."""
        positive("negative_binomial", p=p)
        if p > 1:
            raise ParamError(complaint("negative_binomial", "p", "a number of at most 1", p))
        if p == 1 or k == 0:
            return self.poisson(shape, 0.0, dtype)
        positive("negative_binomial", k=k)
        return self.poisson(shape, self.gamma(shape, k, (1.0 - p) / p, dt.float64), dtype)

    @explained
    def generalized_negative_binomial(
        self,
        shape: Sequence[int],
        mu: float = 1.0,
        alpha: float = 1.0,
        dtype: Any = dt.default_real,
    ) -> Expr:
        """Whole numbers of mean `mu` and variance `mu + alpha * mu**2`; ParamError below 0."""
        if alpha == 0 or mu == 0:
            return self.poisson(shape, mu, dtype)
        positive("generalized_negative_binomial", mu=mu, alpha=alpha)
        rate = self.gamma(shape, 1.0 / alpha, mu * alpha, dt.float64)
        return self.poisson(shape, rate, dtype)

    @explained
    def integers(self, shape: Sequence[int], dtype: Any = dt.int64) -> Expr:
        """Integers from 0 to before 2**32; of narrower types, from all they hold."""
        kind = dt.of(dtype)
        if kind.kind not in "iu":
            raise DTypeError(complaint("integers", "dtype", "an integer type", kind.name))
        low, high = kind.limits if kind.size <= 4 else (0, 2**32 - 1)
        share = self.uniform(shape, dt.float64) * float(high - low + 1)
        return cast(fn.floor(share) + float(low), kind)


def constant(number: float, shape: Sequence[int], dtype: DType) -> Expr:
    """An expression of `shape` that is `number` everywhere."""
    return broadcast_to(Scalar(number, dtype), shape)


def positive(where: str, **numbers: float) -> None:
    """A ParamError unless all numbers are finite and above 0."""
    for name, value in numbers.items():
        if not 0 < value < float("inf"):
            raise ParamError(complaint(where, name, "a finite number above 0", value))
