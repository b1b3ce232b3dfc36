"""The functions of `mx.nd.random` and `mx.sym.random` that draw from a distribution.

Both packages give them the same names, parameters and documentation; each brings what draws:
`draw(name, inputs, given)` with the distribution's parameters as `inputs`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gnomon.base import ParamError, complaint, nearest, shown
from gnomon.ops import registry
from gnomon.ops.signature import ANY_KIND

OPEN = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


class Distribution(NamedTuple):
    """What a distribution is called, what its draws are, and its parameters with defaults."""

    name: str
    doc: str
    defaults: dict[str, float]


UNIFORM = Distribution("uniform", "Draws between `low` and `high`.", {"low": 0, "high": 1})
NORMAL = Distribution(
    "normal", "Normal draws: mean `loc`, deviation `scale`.", {"loc": 0, "scale": 1}
)
POISSON = Distribution("poisson", "Poisson draws of rate `lam`.", {"lam": 1})
GAMMA = Distribution(
    "gamma", "Gamma draws of shape `alpha` and scale `beta`.", {"alpha": 1, "beta": 1}
)
NEGATIVE_BINOMIAL = Distribution(
    "negative_binomial", "Failures before `k` successes of probability `p`.", {"k": 1, "p": 1}
)
GENERALIZED = Distribution(
    "generalized_negative_binomial",
    "Draws of a Poisson whose rate is gamma: mean `mu`, dispersion `alpha`.",
    {"mu": 1, "alpha": 1},
)


def sampler(name: str) -> str:
    """The operator that draws for each element of arrays.

    Raises:
        TypeError: there is none of this distribution.
    """
    full = f"_sample_{name}"
    if not registry.has(full):
        expected = "numbers, not arrays or symbols"
        raise TypeError(complaint(f"random.{name}", "args", expected, "others"))
    return full


def optional(*names: str) -> list[inspect.Parameter]:
    """Parameters that may be left out."""
    return [inspect.Parameter(name, ANY_KIND, default=None) for name in names]


def function(
    kind: Distribution,
    draw: Callable[[str, dict[str, Any], dict[str, Any]], Any],
    tail: Sequence[inspect.Parameter],
) -> Any:
    """The function that draws from a distribution; `tail` comes after the distribution's own."""
    own = [inspect.Parameter(k, ANY_KIND, default=v) for k, v in kind.defaults.items()]
    signature = inspect.Signature([*own, *tail])

    def drawing(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _refused(kind.name, signature, kwargs, error) from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        given |= given.pop("kwargs", {})
        return draw(kind.name, {key: given.pop(key) for key in kind.defaults}, given)

    drawn: Any = drawing
    drawn.__name__ = drawn.__qualname__ = kind.name
    drawn.__signature__ = signature
    drawn.__doc__ = kind.doc
    return drawn


def _refused(
    name: str, signature: inspect.Signature, given: dict[str, Any], error: TypeError
) -> Exception:
    """The error of a call that does not fit a signature, which Python says without the function."""
    where, known = f"random.{name}", signature.parameters
    unknown = next((key for key in given if key not in known), None)
    if unknown is None or "kwargs" in known:
        return TypeError(f"{where}: {error}")
    got = f"{shown(given[unknown])}{nearest(unknown, known)}"
    expected = f"one of the parameters {', '.join(known)}"
    return ParamError(complaint(where, unknown, expected, got))
