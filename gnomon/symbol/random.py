"""Random numbers as symbols: `mx.sym.random`.

Each function takes numbers, and gives draws of the shape asked for, or symbols, and gives draws
for each of their elements.
"""

from __future__ import annotations

import inspect
from typing import Any

from gnomon.base import complaint
from gnomon.symbol import functions
from gnomon.symbol.apply import apply, is_symbol
from gnomon.symbol.symbol import Symbol


def _draw(name: str, inputs: dict[str, Any], given: dict[str, Any]) -> Symbol:
    """The operator `_sample_name` of symbols, or `_random_name` of numbers."""
    own, attr = given.pop("name", None), given.pop("attr", None)
    given = {k: v for k, v in given.items() if v is not None}
    symbols = [is_symbol(v) for v in inputs.values()]
    if any(symbols):
        if not all(symbols):
            got = ", ".join(f"{k}={v!r:.40}" for k, v in inputs.items())
            raise TypeError(complaint(f"random.{name}", "args", "all symbols or all numbers", got))
        full = f"_sample_{name}"
        return apply(Symbol, full, full, tuple(inputs.values()), {}, given, own, attr)
    full = f"_random_{name}"
    return apply(Symbol, full, full, (), {}, {**inputs, **given}, own, attr)


def _distribution(name: str, doc: str, **defaults: float) -> Any:
    """The function that draws from one distribution."""
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(k, kind, default=v) for k, v in defaults.items()]
    parameters += [inspect.Parameter(k, kind, default=None) for k in ("shape", "dtype")]
    parameters.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
    signature = inspect.Signature(parameters)

    def draw(*args: Any, **kwargs: Any) -> Symbol:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        further = given.pop("kwargs", {})
        inputs = {k: given.pop(k) for k in defaults}
        return _draw(name, inputs, {**given, **further})

    draw.__name__ = draw.__qualname__ = name
    draw.__signature__ = signature  # type: ignore[attr-defined]
    draw.__doc__ = doc
    return draw


uniform = _distribution("uniform", "Draws between `low` and `high`.", low=0, high=1)
normal = _distribution("normal", "Normal draws: mean `loc`, deviation `scale`.", loc=0, scale=1)
poisson = _distribution("poisson", "Poisson draws of rate `lam`.", lam=1)
gamma = _distribution("gamma", "Gamma draws of shape `alpha` and scale `beta`.", alpha=1, beta=1)
negative_binomial = _distribution(
    "negative_binomial", "Failures before `k` successes of probability `p`.", k=1, p=1
)
generalized_negative_binomial = _distribution(
    "generalized_negative_binomial",
    "Negative binomial draws of mean `mu` and dispersion `alpha`.",
    mu=1,
    alpha=1,
)


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
    data: Symbol, shape: Any = None, get_prob: bool = False, dtype: str = "int32", **kwargs: Any
) -> Symbol:
    """Numbers of classes drawn by the probabilities in each row of `data`."""
    given = {"shape": shape, "get_prob": get_prob, "dtype": dtype, **kwargs}
    return _draw("multinomial", {"data": data}, given)


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """`data` with its rows in random order."""
    own, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    return apply(Symbol, "_shuffle", "shuffle", (data,), {}, kwargs, own, attr)


def __getattr__(name: str) -> Any:
    return functions.find("random", name)
