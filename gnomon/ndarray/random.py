"""Random numbers as arrays: `mx.nd.random`.

Each function takes numbers, and gives draws of the shape asked for, or arrays, and gives draws for
each of their elements. A draw takes its place in the sequence of the seed when it is called. As in
all functions of arrays, `name` is for programs that make arrays or symbols: it changes nothing.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

from gnomon.base import check_kind, complaint, shown
from gnomon.ndarray import create
from gnomon.ndarray.api import functions
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ops import draws, registry
from gnomon.ops.draws import function, optional

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "uniform",
]


def _draw(name: str, inputs: dict[str, Any], given: dict[str, Any]) -> Any:
    """The operator `_sample_name` of arrays, or `_random_name` of numbers."""
    out, ctx = given.pop("out", None), functions.context_of(given.pop("ctx", None))
    given = {k: v for k, v in given.items() if v is not None and k != "name"}
    arrays = [isinstance(value, Array) for value in inputs.values()]
    if any(arrays):
        if not all(arrays):
            got = ", ".join(f"{k}={shown(v)}" for k, v in inputs.items())
            raise TypeError(complaint(f"random.{name}", "args", "all arrays or all numbers", got))
        op = registry.find(draws.sampler(name)).parse(given)
        return invoke(op, list(inputs.values()), out, ctx)
    if out is not None:
        check_kind(f"random.{name}", "out", out, Array, "an NDArray")
        given = {"dtype": out._dtype.name, **given}
    else:
        given = {"shape": (1,), **given}
    op = registry.find(f"_random_{name}").parse({**inputs, **given})
    if out is None and (not op.shape or 0 in op.shape):  # meant as it is: operators take it as open
        out = create.empty(op.shape, ctx, op.real())
    return out if out is not None and not out.size else invoke(op, (), out, ctx)


_TAIL = optional("shape", "dtype", "ctx", "out", "name")
uniform = function(draws.UNIFORM, _draw, _TAIL)
normal = function(draws.NORMAL, _draw, _TAIL)
poisson = function(draws.POISSON, _draw, _TAIL)
gamma = function(draws.GAMMA, _draw, _TAIL)
negative_binomial = function(draws.NEGATIVE_BINOMIAL, _draw, _TAIL)
generalized_negative_binomial = function(draws.GENERALIZED, _draw, _TAIL)


def exponential(
    scale: Any = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Exponential draws of mean `scale`."""
    given = {"shape": shape, "dtype": dtype, "ctx": ctx, "out": out}
    check_kind("random.exponential", "scale", scale, (Number, Array), "a number or an NDArray")
    return _draw("exponential", {"lam": 1.0 / scale}, given)


def randn(*shape: int, **kwargs: Any) -> Any:
    """Normal draws of the shape that the arguments spell."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape=shape or (1,), **kwargs)


def randint(
    low: int,
    high: int,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Integers from `low` to before `high`, all equally likely."""
    given = {"shape": shape, "dtype": dtype, "ctx": ctx, "out": out}
    return _draw("randint", {"low": low, "high": high}, given)


def multinomial(
    data: Any,
    shape: Any = (),
    get_prob: bool = False,
    out: Any = None,
    dtype: str = "int32",
    name: str | None = None,
) -> Any:
    """Numbers of classes drawn by the probabilities in each row of `data`.

    With `get_prob` also the logarithms of their probabilities.
    """
    given = {"shape": shape, "get_prob": get_prob, "dtype": dtype, "out": out}
    return functions.find("", "sample_multinomial")(data, **given)


__getattr__, __dir__ = functions.attributes("random", (*__all__, "shuffle"))  # `_shuffle`
