"""Random numbers as arrays: `mx.nd.random`.

Each function takes numbers, and gives draws of the shape asked for, or arrays, and gives draws for
each of their elements. A draw takes its place in the sequence of the seed when it is called.
"""

from __future__ import annotations

import inspect
from typing import Any

from gnomon.base import complaint
from gnomon.ndarray import create, functions
from gnomon.ndarray.core import Array
from gnomon.ndarray.invoke import invoke
from gnomon.ops import registry


def _draw(name: str, inputs: dict[str, Any], given: dict[str, Any]) -> Any:
    """The operator `_sample_name` of arrays, or `_random_name` of numbers."""
    out, ctx = given.pop("out", None), functions.context_of(given.pop("ctx", None))
    given = {key: value for key, value in given.items() if value is not None}
    arrays = [isinstance(value, Array) for value in inputs.values()]
    if any(arrays):
        if not all(arrays):
            got = ", ".join(f"{k}={v!r:.40}" for k, v in inputs.items())
            raise TypeError(complaint(f"random.{name}", "args", "all arrays or all numbers", got))
        op = registry.find(f"_sample_{name}").parse(given)
        return invoke(op, list(inputs.values()), out, ctx)
    if out is not None:
        given = {"dtype": out._dtype.name, **given}
    else:
        given = {"shape": (1,), **given}
    op = registry.find(f"_random_{name}").parse({**inputs, **given})
    if out is None and (not op.shape or 0 in op.shape):  # meant as it is: operators take it as open
        out = create.empty(op.shape, ctx, op.real())
    return out if out is not None and not out.size else invoke(op, (), out, ctx)


def _distribution(name: str, doc: str, **defaults: float) -> Any:
    """The function that draws from one distribution."""
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(k, kind, default=v) for k, v in defaults.items()]
    own = ("shape", "dtype", "ctx", "out")
    parameters += [inspect.Parameter(key, kind, default=None) for key in own]
    signature = inspect.Signature(parameters)

    def draw(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        inputs = {key: given.pop(key) for key in defaults}
        return _draw(name, inputs, given)

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
    "Draws of a Poisson whose rate is gamma: mean `mu`, dispersion `alpha`.",
    mu=1,
    alpha=1,
)


def exponential(
    scale: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Exponential draws of mean `scale`."""
    given = {"shape": shape, "dtype": dtype, "ctx": ctx, "out": out}
    return _draw("exponential", {"lam": 1.0 / scale}, given)


def randn(*shape: int, **kwargs: Any) -> Any:
    """Normal draws of the shape that the arguments spell."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape=shape or (1,), **kwargs)


def randint(
    low: int, high: int, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Integers from `low` to before `high`, all equally likely."""
    given = {"shape": shape, "dtype": dtype, "ctx": ctx, "out": out}
    return _draw("randint", {"low": low, "high": high}, given)


def __getattr__(name: str) -> Any:
    """What has an operator: see the differences for what has none yet."""
    return functions.find("random", _OPERATORS.get(name, name))


#: functions whose operators have another name
_OPERATORS = {"multinomial": "_sample_multinomial", "shuffle": "_shuffle"}
