"""`mx.random`: seeds, and draws as arrays.

>>> import gnomon as mx
>>> mx.random.seed(7)
>>> first = mx.random.uniform(shape=(3,)).asnumpy()
>>> mx.random.seed(7)
>>> bool((mx.random.uniform(shape=(3,)).asnumpy() == first).all())
True
"""

from __future__ import annotations

from typing import Any

from gnomon import resource
from gnomon.context import Context
from gnomon.ndarray import random as _drawn
from gnomon.ndarray.random import (
    exponential,
    gamma,
    generalized_negative_binomial,
    negative_binomial,
    normal,
    poisson,
    randint,
    randn,
    uniform,
)

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "seed",
    "uniform",
]


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Make what is drawn from now on repeatable, on one device or on all.

    The same seed gives the same numbers for any number of threads.

    Raises:
        ParamError: `seed_state` is no integer, or `ctx` no context.
    """
    resource.seed(seed_state, Context(ctx) if isinstance(ctx, Context) else ctx)


def __getattr__(name: str) -> Any:
    """The other functions of `mx.nd.random` that draw."""
    if name in ("multinomial", "shuffle"):
        return getattr(_drawn, name)
    raise AttributeError(f"module 'gnomon.random' has no attribute {name!r}")
