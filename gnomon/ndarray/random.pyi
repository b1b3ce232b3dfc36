# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.ndarray import NDArray
exponential: Any
gamma: Any
generalized_negative_binomial: Any
multinomial: Any
negative_binomial: Any
normal: Any
poisson: Any
randint: Any
randn: Any
uniform: Any
def exponential_like(data: NDArray, lam: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers of an exponential distribution, in the shape and dtype of `data`."""
def gamma_like(data: NDArray, alpha: float = 1.0, beta: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers of a gamma distribution, in the shape and dtype of `data`."""
def generalized_negative_binomial_like(data: NDArray, mu: float = 1.0, alpha: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Whole numbers of mean `mu` and variance `mu + alpha * mu**2`, in the shape and dtype of `data`."""
def negative_binomial_like(data: NDArray, k: int = 1, p: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Failures before `k` successes of probability `p`, in the shape and dtype of `data`."""
def normal_like(data: NDArray, loc: float = 0.0, scale: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers of a normal distribution, in the shape and dtype of `data`."""
def pdf_dirichlet(sample: NDArray, alpha: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of Dirichlet distributions with concentrations `alpha`, along the last axis."""
def pdf_exponential(sample: NDArray, lam: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of exponential distributions of rate `lam`."""
def pdf_gamma(sample: NDArray, alpha: NDArray | None = ..., beta: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of gamma distributions of shape `alpha` and rate `beta`."""
def pdf_generalized_negative_binomial(sample: NDArray, mu: NDArray | None = ..., alpha: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The probability of whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""
def pdf_negative_binomial(sample: NDArray, k: NDArray | None = ..., p: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The probability of failures before `k` successes of probability `p`."""
def pdf_normal(sample: NDArray, mu: NDArray | None = ..., sigma: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of normal distributions of mean `mu` and deviation `sigma`."""
def pdf_poisson(sample: NDArray, lam: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The probability of whole numbers of Poisson distributions of mean `lam`."""
def pdf_uniform(sample: NDArray, low: NDArray | None = ..., high: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of numbers between `low` and `high`, all equally likely."""
def poisson_like(data: NDArray, lam: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Whole numbers of a Poisson distribution, in the shape and dtype of `data`."""
def uniform_like(data: NDArray, low: float = 0.0, high: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely, in the shape and dtype of `data`."""
