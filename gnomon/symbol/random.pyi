# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.symbol import Symbol
exponential: Any
gamma: Any
generalized_negative_binomial: Any
multinomial: Any
negative_binomial: Any
normal: Any
poisson: Any
randint: Any
randn: Any
shuffle: Any
uniform: Any
def exponential_like(data: Symbol, lam: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of an exponential distribution, in the shape and dtype of `data`."""
def gamma_like(data: Symbol, alpha: float = 1.0, beta: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of a gamma distribution, in the shape and dtype of `data`."""
def generalized_negative_binomial_like(data: Symbol, mu: float = 1.0, alpha: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Whole numbers of mean `mu` and variance `mu + alpha * mu**2`, in the shape and dtype of `data`."""
def negative_binomial_like(data: Symbol, k: int = 1, p: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Failures before `k` successes of probability `p`, in the shape and dtype of `data`."""
def normal_like(data: Symbol, loc: float = 0.0, scale: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of a normal distribution, in the shape and dtype of `data`."""
def pdf_dirichlet(sample: Symbol, alpha: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of Dirichlet distributions with concentrations `alpha`, along the last axis."""
def pdf_exponential(sample: Symbol, lam: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of exponential distributions of rate `lam`."""
def pdf_gamma(sample: Symbol, alpha: Symbol | None = ..., beta: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of gamma distributions of shape `alpha` and rate `beta`."""
def pdf_generalized_negative_binomial(sample: Symbol, mu: Symbol | None = ..., alpha: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The probability of whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""
def pdf_negative_binomial(sample: Symbol, k: Symbol | None = ..., p: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The probability of failures before `k` successes of probability `p`."""
def pdf_normal(sample: Symbol, mu: Symbol | None = ..., sigma: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of normal distributions of mean `mu` and deviation `sigma`."""
def pdf_poisson(sample: Symbol, lam: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The probability of whole numbers of Poisson distributions of mean `lam`."""
def pdf_uniform(sample: Symbol, low: Symbol | None = ..., high: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of numbers between `low` and `high`, all equally likely."""
def poisson_like(data: Symbol, lam: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Whole numbers of a Poisson distribution, in the shape and dtype of `data`."""
def uniform_like(data: Symbol, low: float = 0.0, high: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely, in the shape and dtype of `data`."""
