"""Densities of distributions at samples: `sample` has further axes behind those of the parameters.

Where the density is 0 the logarithm is -inf; MXNet does not look whether a sample can be drawn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.case import Cases, case
from gnomon.ops.infer import Shape, Shapes
from gnomon.ops.op import Op, op
from gnomon.ops.param import param

NEVER = -math.inf


class Density(Op):
    """What densities share: a logarithm, and parameters beside each sample."""

    is_log: bool = param(False, doc="Give the logarithm.")
    own_axes = 0  # of a sample and of the parameters

    def shapes(self, s: Shapes) -> None:
        first, *others = self.arguments()[1:]
        s.same(first, *others)
        sample, leading = s.need("sample"), s.need(first)
        own = self.own_axes
        if len(sample) < len(leading):
            raise s.refuse("sample", f"at least {len(leading)} axes", f"shape {sample}")
        outer = len(leading) - own
        s[first] = (*sample[:outer], *sample[len(sample) - own :])
        s["sample"] = (*s.need(first)[:outer], *sample[outer:])
        s["output"] = s.need("sample")[: len(sample) - own]

    def forward(self, sample: Expr, *parameters: Expr) -> Expr:
        found = self.logarithm(sample, *(self.wide(p, sample.shape) for p in parameters))
        return found if self.is_log else fn.exp(found)

    def wide(self, parameter: Expr, shape: Shape) -> Expr:
        """A parameter beside each sample."""
        own, given = self.own_axes, parameter.shape
        outer = len(given) - own
        thin = (*given[:outer], *(1 for _ in shape[len(given) :]), *given[outer:])
        return ext.broadcast_to(ext.reshape(parameter, thin), shape)

    def logarithm(self, *parts: Any, **_: Any) -> Expr:
        """The logarithm of the density, of a sample and the parameters beside it."""
        raise NotImplementedError


def tried(*parameters: object, low: float = 0.2, high: float = 3.0) -> Cases:
    """Cases of a density with these shapes of parameters: with and without the logarithm."""
    return tuple(
        case((2, 3), *parameters, low=low, high=high, is_log=is_log) for is_log in (False, True)
    )


@op("_random_pdf_uniform", inputs=("sample", "low", "high"), aliases=("random_pdf_uniform",))
class UniformDensity(Density):
    """The density of numbers between `low` and `high`, all equally likely."""

    cases = tried([0.1, 0.0], [3.1, 3.5])

    def logarithm(self, x: Expr, low: Expr, high: Expr) -> Expr:
        inside = fn.logical_and(fn.ge(x, low), fn.le(x, high))
        return fn.where(inside, -fn.log(high - low), NEVER)

    def reference(self, x: Any, low: Any, high: Any) -> Any:
        log = -np.log(np.subtract(high, low))[:, None] + np.zeros_like(x)
        return log if self.is_log else np.exp(log)


@op("_random_pdf_normal", inputs=("sample", "mu", "sigma"), aliases=("random_pdf_normal",))
class NormalDensity(Density):
    """The density of normal distributions of mean `mu` and deviation `sigma`."""

    cases = tried((2,), (2,))

    def logarithm(self, x: Expr, mu: Expr, sigma: Expr) -> Expr:
        away = (x - mu) / sigma
        return away * away * -0.5 - fn.log(sigma) - 0.5 * math.log(2 * math.pi)


@op("_random_pdf_gamma", inputs=("sample", "alpha", "beta"), aliases=("random_pdf_gamma",))
class GammaDensity(Density):
    """The density of gamma distributions of shape `alpha` and rate `beta`."""

    cases = tried((2,), (2,))

    def logarithm(self, x: Expr, alpha: Expr, beta: Expr) -> Expr:
        found = alpha * fn.log(beta) + (alpha - 1.0) * fn.log(x) - beta * x - fn.gammaln(alpha)
        return fn.where(fn.ge(x, 0), found, NEVER)


@op("_random_pdf_exponential", inputs=("sample", "lam"), aliases=("random_pdf_exponential",))
class ExponentialDensity(Density):
    """The density of exponential distributions of rate `lam`."""

    cases = tried((2,))

    def logarithm(self, x: Expr, lam: Expr) -> Expr:
        return fn.where(fn.ge(x, 0), fn.log(lam) - lam * x, NEVER)


@op("_random_pdf_poisson", inputs=("sample", "lam"), aliases=("random_pdf_poisson",))
class PoissonDensity(Density):
    """The probability of whole numbers of Poisson distributions of mean `lam`."""

    cases = tried((2,))

    def logarithm(self, x: Expr, lam: Expr) -> Expr:
        return x * fn.log(lam) - lam - fn.gammaln(x + 1.0)


def negative_binomial(x: Expr, k: Expr, p: Expr) -> Expr:
    """The logarithm of the probability of `x` failures before `k` successes of probability `p`."""
    ways = fn.gammaln(x + k) - fn.gammaln(x + 1.0) - fn.gammaln(k)
    return ways + k * fn.log(p) + x * fn.log1p(-p)


@op(
    "_random_pdf_negative_binomial",
    inputs=("sample", "k", "p"),
    aliases=("random_pdf_negative_binomial",),
)
class NegativeBinomialDensity(Density):
    """The probability of failures before `k` successes of probability `p`."""

    cases = tried((2,), [0.4, 0.7])

    def logarithm(self, x: Expr, k: Expr, p: Expr) -> Expr:
        return negative_binomial(x, k, p)


@op(
    "_random_pdf_generalized_negative_binomial",
    inputs=("sample", "mu", "alpha"),
    aliases=("random_pdf_generalized_negative_binomial",),
)
class GeneralizedNegativeBinomialDensity(Density):
    """The probability of whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""

    cases = tried((2,), (2,))

    def logarithm(self, x: Expr, mu: Expr, alpha: Expr) -> Expr:
        return negative_binomial(x, 1.0 / alpha, 1.0 / (mu * alpha + 1.0))


@op("_random_pdf_dirichlet", inputs=("sample", "alpha"), aliases=("random_pdf_dirichlet",))
class DirichletDensity(Density):
    """The density of Dirichlet distributions with concentrations `alpha`, along the last axis."""

    own_axes = 1
    cases = (case((2, 4, 3), (2, 3), low=0.2), case((4, 3), (3,), low=0.2, is_log=True))

    def logarithm(self, x: Expr, alpha: Expr) -> Expr:
        def total(e: Expr) -> Expr:
            return ext.reduce(e, "sum", -1)

        shares = total((alpha - 1.0) * fn.log(x))
        return shares + fn.gammaln(total(alpha)) - total(fn.gammaln(alpha))
