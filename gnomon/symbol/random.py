"""Random numbers as symbols: `mx.sym.random`.

Each function takes numbers, and gives draws of the shape asked for, or symbols, and gives draws
for each of their elements.
"""

from __future__ import annotations

from typing import Any

from gnomon.base import complaint, shown
from gnomon.ops import draws
from gnomon.ops.draws import OPEN, function, optional
from gnomon.symbol import functions
from gnomon.symbol.apply import apply, is_symbol
from gnomon.symbol.symbol import Symbol

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
    "shuffle",
    "uniform",
]


def _draw(name: str, inputs: dict[str, Any], given: dict[str, Any]) -> Symbol:
    """The operator `_sample_name` of symbols, or `_random_name` of numbers."""
    own, attr = given.pop("name", None), given.pop("attr", None)
    given = {k: v for k, v in given.items() if v is not None}
    symbols = [is_symbol(v) for v in inputs.values()]
    if any(symbols):
        if not all(symbols):
            got = ", ".join(f"{k}={shown(v)}" for k, v in inputs.items())
            raise TypeError(complaint(f"random.{name}", "args", "all symbols or all numbers", got))
        full = draws.sampler(name)
        return apply(Symbol, full, full, tuple(inputs.values()), {}, given, own, attr)
    full = f"_random_{name}"
    return apply(Symbol, full, full, (), {}, {**inputs, **given}, own, attr)


_TAIL = [*optional("shape", "dtype"), OPEN]
uniform = function(draws.UNIFORM, _draw, _TAIL)
normal = function(draws.NORMAL, _draw, _TAIL)
poisson = function(draws.POISSON, _draw, _TAIL)
gamma = function(draws.GAMMA, _draw, _TAIL)
negative_binomial = function(draws.NEGATIVE_BINOMIAL, _draw, _TAIL)
generalized_negative_binomial = function(draws.GENERALIZED, _draw, _TAIL)


def exponential(scale: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Exponential draws of mean `scale`."""
    rate = 1.0 / scale
    return _draw("exponential", {"lam": rate}, {"shape": shape, "dtype": dtype, **kwargs})


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Normal draws of the shape given by its sizes; `loc` and `scale` by name."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape=shape, **kwargs)


def randint(low: int, high: int, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Integers from `low` to below `high`."""
    given = {"shape": shape, "dtype": dtype, **kwargs}
    return _draw("randint", {"low": low, "high": high}, given)


def multinomial(
    data: Symbol, shape: Any = None, get_prob: bool = True, dtype: str = "int32", **kwargs: Any
) -> Symbol:
    """Numbers of classes drawn by the probabilities in each row of `data`.

    With `get_prob`, as by default and unlike `nd`, also the logarithms of their probabilities.
    """
    given = {"shape": shape, "get_prob": get_prob, "dtype": dtype, **kwargs}
    return _draw("multinomial", {"data": data}, given)


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """`data` with its rows in random order."""
    own, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    return apply(Symbol, "_shuffle", "_shuffle", (data,), {}, kwargs, own, attr)


__getattr__, __dir__ = functions.attributes("random", (*__all__, "shuffle"))  # `_shuffle`
