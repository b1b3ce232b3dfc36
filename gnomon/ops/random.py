"""Operators that draw random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gnomon import dtype as dtypes
from gnomon.base import ParamError, complaint
from gnomon.dtype import DType, float32, float64, int32
from gnomon.expr import fn
from gnomon.expr.functions.distributions import Distributions
from gnomon.expr.node import Expr, cast
from gnomon.ops.create import FLOATS, Created, Known
from gnomon.ops.infer import Shape
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

    def forward(self, *, random: Draws, out_shapes: Known = None) -> Expr:
        return self.drawn(random, self.made(out_shapes), self.real())

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        """Numbers of the distribution."""
        raise NotImplementedError(f"{self.name}: says nothing of drawn")


class Alike(Op):
    """What draws of the shape and dtype of `data` share: no gradient goes through."""

    def forward(self, data: Expr, *, random: Draws) -> Expr:
        return self.drawn(random, data.shape, data.dtype)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[None]:
        return (None,)

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        """Numbers of the distribution."""
        raise NotImplementedError(f"{self.name}: says nothing of drawn")


def distribution(name: str, *aliases: str) -> Callable[[type], type]:
    """Declare a class the operators `_random_NAME`, of a shape, and `_random_NAME_like`.

    The class has the distribution's parameters, and `drawn`.
    """

    def declare(cls: type) -> type:
        full, said = f"random_{name}", (cls.__doc__ or "").removesuffix(".")
        plain = type(cls.__name__, (cls, Drawn), {"__doc__": cls.__doc__})
        op(f"_{full}", inputs=(), aliases=(full, *aliases))(plain)
        like = {"__doc__": f"{said}, in the shape and dtype of `data`."}
        op(f"_{full}_like")(type(f"{cls.__name__}Like", (cls, Alike), like))
        return cls

    return declare


def check_range(op: Op, low: str, high: str) -> None:
    """Refuse a range that ends before it begins."""
    if getattr(op, low) > getattr(op, high):
        expected = f"at least {low}, {getattr(op, low)}"
        raise ParamError(complaint(op.name, high, expected, getattr(op, high)))


@distribution("uniform", "uniform")
class RandomUniform:
    """Numbers from `low` (included) to `high` (excluded), all equally likely."""

    low: float = param(0.0, doc="Least number.")
    high: float = param(1.0, doc="End of the numbers.")

    def check(self: Any) -> None:
        check_range(self, "low", "high")

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        return random.uniform(shape, dtype) * (self.high - self.low) + self.low


@distribution("normal", "normal")
class RandomNormal:
    """Numbers of a normal distribution."""

    loc: float = param(0.0, doc="Mean.")
    scale: float = param(1.0, low=0, doc="Standard deviation.")

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        return random.normal(shape, dtype) * self.scale + self.loc


@distribution("exponential")
class RandomExponential:
    """Numbers of an exponential distribution."""

    lam: float = param(1.0, doc="Rate, above 0: one divided by the mean.")

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        return Drawing(random).exponential(shape, self.lam, dtype)


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

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        share = random.uniform(shape, float64) * float(self.high - self.low)
        return cast(fn.floor(share), dtype) + self.low


class Drawing(Distributions):
    """The distributions over the numbers that an operator is given."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def _draw(self, shape: Sequence[int], kind: str, dtype: Any) -> Expr:
        draw = self._draws.uniform if kind == "uniform" else self._draws.normal
        return draw(tuple(shape), dtypes.of(dtype))


@distribution("gamma")
class RandomGamma:
    """Numbers of a gamma distribution."""

    alpha: float = param(1.0, doc="Shape, above 0.")
    beta: float = param(1.0, doc="Scale, above 0.")

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        return Drawing(random).gamma(shape, self.alpha, self.beta, dtype)


@distribution("poisson")
class RandomPoisson:
    """Whole numbers of a Poisson distribution."""

    lam: float = param(1.0, low=0, doc="Mean.")

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        return Drawing(random).poisson(shape, self.lam, dtype)


@distribution("negative_binomial")
class RandomNegativeBinomial:
    """Failures before `k` successes of probability `p`."""

    k: int = param(1, low=0, doc="Successes to wait for.")
    p: float = param(1.0, doc="Probability of each, above 0 and at most 1.")

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        return Drawing(random).negative_binomial(shape, self.k, self.p, dtype)


@distribution("generalized_negative_binomial")
class RandomGeneralizedNegativeBinomial:
    """Whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""

    mu: float = param(1.0, low=0, doc="Mean.")
    alpha: float = param(1.0, low=0, doc="Dispersion.")

    def drawn(self, random: Draws, shape: Shape, dtype: DType) -> Expr:
        return Drawing(random).generalized_negative_binomial(shape, self.mu, self.alpha, dtype)
