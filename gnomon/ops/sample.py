"""Operators that draw by arrays of parameters: `shape` numbers for each of their elements."""

from __future__ import annotations

from typing import Any

from gnomon.dtype import DType, float32, float64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.create import FLOATS
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import Draws, Op, op
from gnomon.ops.param import Dims, param
from gnomon.ops.random import Drawing

NAN = float("nan")


class Sample(Op):
    """What draws by arrays share: the parameters have one shape, no gradient goes through."""

    shape: Dims = param((), doc="Shape of the draws for each element.")
    dtype: DType | None = param(None, choices=FLOATS, doc="Dtype of the output; float32 if None.")

    def shapes(self, s: Shapes) -> None:
        names = self.arguments()
        s.same(*names)
        s["output"] = (*s.need(names[0]), *self.shape)

    def types(self, t: Types) -> None:
        t["output"] = self.dtype or float32

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[None, ...]:
        return (None,) * len(self.arguments())

    def wide(self, parameter: Expr, dtype: DType) -> Expr:
        """A parameter beside each draw."""
        shape = parameter.shape
        tall = ext.reshape(cast(parameter, dtype), (*shape, *(1 for _ in self.shape)))
        return ext.broadcast_to(tall, (*shape, *self.shape))

    def real(self) -> DType:
        """The dtype of the output."""
        return self.dtype or float32


@op("_sample_uniform", inputs=("low", "high"), aliases=("sample_uniform",))
class SampleUniform(Sample):
    """Numbers from `low` (included) to `high` (excluded), all equally likely."""

    def forward(self, low: Expr, high: Expr, *, random: Draws) -> Expr:
        least, end = self.wide(low, self.real()), self.wide(high, self.real())
        return random.uniform(least.shape, self.real()) * (end - least) + least


@op("_sample_normal", inputs=("mu", "sigma"), aliases=("sample_normal",))
class SampleNormal(Sample):
    """Numbers of normal distributions of mean `mu` and deviation `sigma`."""

    def forward(self, mu: Expr, sigma: Expr, *, random: Draws) -> Expr:
        mean, width = self.wide(mu, self.real()), self.wide(sigma, self.real())
        return random.normal(mean.shape, self.real()) * width + mean


@op("_sample_exponential", inputs=("lam",), aliases=("sample_exponential",))
class SampleExponential(Sample):
    """Numbers of exponential distributions of rate `lam`; NaN unless that is above 0."""

    def forward(self, lam: Expr, *, random: Draws) -> Expr:
        rate = self.wide(lam, self.real())
        drawn = -fn.log1p(-random.uniform(rate.shape, self.real())) / rate
        return fn.where(rate > 0.0, drawn, NAN)


@op("_sample_gamma", inputs=("alpha", "beta"), aliases=("sample_gamma",))
class SampleGamma(Sample):
    """Numbers of gamma distributions of shape `alpha` and scale `beta`; NaN unless above 0."""

    def forward(self, alpha: Expr, beta: Expr, *, random: Draws) -> Expr:
        form, scale = self.wide(alpha, float64), self.wide(beta, float64)
        drawn = Drawing(random).gamma(form.shape, form, scale, float64)
        return cast(fn.where((form > 0.0) * (scale > 0.0), drawn, NAN), self.real())


@op("_sample_poisson", inputs=("lam",), aliases=("sample_poisson",))
class SamplePoisson(Sample):
    """Whole numbers of Poisson distributions of mean `lam`; NaN below 0."""

    def forward(self, lam: Expr, *, random: Draws) -> Expr:
        mean = self.wide(lam, float64)
        drawn = Drawing(random).poisson(mean.shape, mean, float64)
        return cast(fn.where(mean >= 0.0, drawn, NAN), self.real())


@op("_sample_negative_binomial", inputs=("k", "p"), aliases=("sample_negative_binomial",))
class SampleNegativeBinomial(Sample):
    """Failures before `k` successes of probability `p`; NaN unless k >= 0, 0 < p <= 1."""

    def forward(self, k: Expr, p: Expr, *, random: Draws) -> Expr:
        count, chance = self.wide(k, float64), self.wide(p, float64)
        draws = Drawing(random)
        rate = draws.gamma(count.shape, count, (1.0 - chance) / chance, float64)
        drawn = draws.poisson(count.shape, fn.where(count > 0.0, rate, 0.0), float64)
        valid = (count >= 0.0) * (chance > 0.0) * (chance <= 1.0)
        return cast(fn.where(valid, drawn, NAN), self.real())


@op(
    "_sample_generalized_negative_binomial",
    inputs=("mu", "alpha"),
    aliases=("sample_generalized_negative_binomial",),
)
class SampleGeneralizedNegativeBinomial(Sample):
    """Whole numbers of mean `mu` and variance `mu + alpha * mu**2`; NaN below 0."""

    def forward(self, mu: Expr, alpha: Expr, *, random: Draws) -> Expr:
        mean, spread = self.wide(mu, float64), self.wide(alpha, float64)
        draws = Drawing(random)
        some = fn.where(spread > 0.0, spread, 1.0)
        mixed = draws.gamma(mean.shape, 1.0 / some, mean * some, float64)
        drawn = draws.poisson(mean.shape, fn.where(spread > 0.0, mixed, mean), float64)
        return cast(fn.where((mean >= 0.0) * (spread >= 0.0), drawn, NAN), self.real())
