"""Operators that draw random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gnomon import dtype as dtypes
from gnomon.base import ParamError, complaint
from gnomon.dtype import DType, float32, float64, int32
from gnomon.expr import fn
from gnomon.expr.functions.distributions import Distributions
from gnomon.expr.node import Expr, cast
from gnomon.ops.create import FLOATS, Created, Known
from gnomon.ops.op import Draws, Op, op
from gnomon.ops.param import Dims, param


class Drawn(Created):
    """What draws without inputs share."""

    leading: ClassVar[tuple[str, ...]] = (
        "low", "high", "loc", "scale", "lam", "mu", "alpha", "beta", "k", "p", *Created.leading,
    )  # fmt: skip
    shape: Dims | None = param(None, doc="Shape of the output.")
    dtype: DType | None = param(None, choices=FLOATS, doc="Dtype of the output; float32 if None.")

    def real(self) -> DType:
        return self.dtype or float32


def check_range(op: Op, low: str, high: str) -> None:
    """Refuse a range that ends before it begins."""
    if getattr(op, low) > getattr(op, high):
        expected = f"at least {low}, {getattr(op, low)}"
        raise ParamError(complaint(op.name, high, expected, getattr(op, high)))


@op("_random_uniform", inputs=(), aliases=("random_uniform", "uniform"))
class RandomUniform(Drawn):
    """Numbers from `low` (included) to `high` (excluded), all equally likely."""

    low: float = param(0.0, doc="Least number.")
    high: float = param(1.0, doc="End of the numbers.")

    def check(self) -> None:
        check_range(self, "low", "high")

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        return (
            random.uniform(self.made(out_shapes), self.real()) * (self.high - self.low) + self.low
        )


@op("_random_normal", inputs=(), aliases=("random_normal", "normal"))
class RandomNormal(Drawn):
    """Numbers of a normal distribution."""

    loc: float = param(0.0, doc="Mean.")
    scale: float = param(1.0, low=0, doc="Standard deviation.")

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        return random.normal(self.made(out_shapes), self.real()) * self.scale + self.loc


@op("_random_exponential", inputs=(), aliases=("random_exponential",))
class RandomExponential(Drawn):
    """Numbers of an exponential distribution."""

    lam: float = param(1.0, doc="Rate: one divided by the mean.")

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        return -fn.log1p(-random.uniform(self.made(out_shapes), self.real())) / self.lam


@op("_random_randint", inputs=(), aliases=("random_randint",))
class RandomInt(Drawn):
    """Integers from `low` (included) to `high` (excluded), all equally likely."""

    low: int = param(doc="Least number.")
    high: int = param(doc="End of the numbers.")
    dtype: DType | None = param(None, choices=("int32", "int64"), doc="Dtype; int32 if None.")

    def check(self) -> None:
        check_range(self, "low", "high")

    def real(self) -> DType:
        return self.dtype or int32

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        share = random.uniform(self.made(out_shapes), float64) * float(self.high - self.low)
        return cast(fn.floor(share), self.real()) + self.low


class Drawing(Distributions):
    """The distributions over the numbers that an operator is given."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def _draw(self, shape: Sequence[int], kind: str, dtype: Any) -> Expr:
        draw = self._draws.uniform if kind == "uniform" else self._draws.normal
        return draw(tuple(shape), dtypes.of(dtype))


@op("_random_gamma", inputs=(), aliases=("random_gamma",))
class RandomGamma(Drawn):
    """Numbers of a gamma distribution."""

    alpha: float = param(1.0, doc="Shape, above 0.")
    beta: float = param(1.0, doc="Scale, above 0.")

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        return Drawing(random).gamma(self.made(out_shapes), self.alpha, self.beta, self.real())


@op("_random_poisson", inputs=(), aliases=("random_poisson",))
class RandomPoisson(Drawn):
    """Whole numbers of a Poisson distribution."""

    lam: float = param(1.0, low=0, doc="Mean.")

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        return Drawing(random).poisson(self.made(out_shapes), self.lam, self.real())


@op("_random_negative_binomial", inputs=(), aliases=("random_negative_binomial",))
class RandomNegativeBinomial(Drawn):
    """Failures before `k` successes of probability `p`."""

    k: int = param(1, low=1, doc="Successes to wait for.")
    p: float = param(1.0, doc="Probability of each, above 0 and at most 1.")

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        shape = self.made(out_shapes)
        return Drawing(random).negative_binomial(shape, self.k, self.p, self.real())


@op(
    "_random_generalized_negative_binomial",
    inputs=(),
    aliases=("random_generalized_negative_binomial",),
)
class RandomGeneralizedNegativeBinomial(Drawn):
    """Whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""

    mu: float = param(1.0, low=0, doc="Mean.")
    alpha: float = param(1.0, low=0, doc="Dispersion.")

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        shape = self.made(out_shapes)
        return Drawing(random).generalized_negative_binomial(
            shape, self.mu, self.alpha, self.real()
        )


class Alike(Op):
    """What draws of the shape and dtype of `data` share: no gradient goes through."""

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[None]:
        return (None,)


@op("_random_uniform_like")
class RandomUniformLike(Alike):
    """Numbers from `low` to `high` in the shape and dtype of `data`."""

    low: float = param(0.0, doc="Least number.")
    high: float = param(1.0, doc="End of the numbers.")

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        return random.uniform(data.shape, data.dtype) * (self.high - self.low) + self.low


@op("_random_normal_like")
class RandomNormalLike(Alike):
    """Numbers of a normal distribution in the shape and dtype of `data`."""

    loc: float = param(0.0, doc="Mean.")
    scale: float = param(1.0, low=0, doc="Standard deviation.")

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        return random.normal(data.shape, data.dtype) * self.scale + self.loc


@op("_random_exponential_like")
class RandomExponentialLike(Alike):
    """Numbers of an exponential distribution in the shape and dtype of `data`."""

    lam: float = param(1.0, doc="Rate: one divided by the mean.")

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        return -fn.log1p(-random.uniform(data.shape, data.dtype)) / self.lam


@op("_random_gamma_like")
class RandomGammaLike(Alike):
    """Numbers of a gamma distribution in the shape and dtype of `data`."""

    alpha: float = param(1.0, doc="Shape, above 0.")
    beta: float = param(1.0, doc="Scale, above 0.")

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        return Drawing(random).gamma(data.shape, self.alpha, self.beta, data.dtype)


@op("_random_poisson_like")
class RandomPoissonLike(Alike):
    """Whole numbers of a Poisson distribution in the shape and dtype of `data`."""

    lam: float = param(1.0, low=0, doc="Mean.")

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        return Drawing(random).poisson(data.shape, self.lam, data.dtype)


@op("_random_negative_binomial_like")
class RandomNegativeBinomialLike(Alike):
    """Failures before `k` successes of probability `p`, in the shape and dtype of `data`."""

    k: int = param(1, low=1, doc="Successes to wait for.")
    p: float = param(1.0, doc="Probability of each, above 0 and at most 1.")

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        return Drawing(random).negative_binomial(data.shape, self.k, self.p, data.dtype)


@op("_random_generalized_negative_binomial_like")
class RandomGeneralizedNegativeBinomialLike(Alike):
    """Whole numbers of mean `mu` and variance `mu + alpha * mu**2`, as many as `data` has."""

    mu: float = param(1.0, low=0, doc="Mean.")
    alpha: float = param(1.0, low=0, doc="Dispersion.")

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        draws = Drawing(random)
        return draws.generalized_negative_binomial(data.shape, self.mu, self.alpha, data.dtype)
