"""Special functions by NumPy and the standard library: what `erf`, `gamma` and the like mean.

Slow and accurate; the compiler has its own vectorised versions, which are held to these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def sinpi(x: Any) -> Any:
    """sin(pi x), with the exact remainder of x."""
    x = np.asarray(x)
    rest = x - 2.0 * np.rint(0.5 * x)
    folded = np.where(np.abs(rest) > 0.5, np.copysign(1.0, rest) - rest, rest)
    return np.sin(np.pi * folded).astype(x.dtype)


def cospi(x: Any) -> Any:
    """cos(pi x), with the exact remainder of x."""
    x = np.asarray(x)
    return np.sin(np.pi * (0.5 - np.abs(x - 2.0 * np.rint(0.5 * x)))).astype(x.dtype)


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """`function` of floats over arrays: computed in float64, given in the argument's dtype."""

    def over(x: Any) -> Any:
        x = np.asarray(x)
        out = np.array([function(float(v)) for v in x.ravel()], np.float64).reshape(x.shape)
        with np.errstate(over="ignore"):
            return out.astype(x.dtype) if x.dtype.kind == "f" else out

    return over


def _pole_safe(function: Callable[[float], float], at_pole: float) -> Callable[[float], float]:
    """`function` without exceptions: overflow is inf, 0 and negative integers give `at_pole`."""

    def safe(x: float) -> float:
        if math.isnan(x) or x == -math.inf:
            return x if math.isnan(x) else at_pole
        try:
            return function(x)
        except OverflowError:  # beside a pole of gamma the sign is that of x
            return math.copysign(math.inf, x if math.isnan(at_pole) else 1.0)
        except ValueError:
            return math.copysign(math.inf, x) if x == 0 and math.isnan(at_pole) else at_pole

    return safe


def _erfinv(y: float) -> float:
    """Newton steps on erf, or on erfc near the ends, from Winitzki's starting value."""
    if not -1.0 < y < 1.0:
        return math.copysign(math.inf, y) if abs(y) == 1.0 else math.nan
    t = math.log1p(-y * y)
    u = 2.0 / (math.pi * 0.147) + 0.5 * t
    x = math.copysign(math.sqrt(max(math.sqrt(u * u - t / 0.147) - u, 0.0)), y)
    for _ in range(4):
        tail = (1 - abs(y)) - math.erfc(abs(x))  # |erf(x)| - |y|, exact near the ends
        error = math.erf(x) - y if abs(y) < 0.5 else math.copysign(1.0, y) * tail
        step = error * 0.5 * math.sqrt(math.pi) * math.exp(x * x)
        x -= step / (1.0 + x * step)
    return x


def _ndtr(x: float) -> float:
    """erfc(y) / 2 with y = -x / sqrt(2), and what a change of y by its rounding error adds."""
    exact = -np.longdouble(x) / np.sqrt(np.longdouble(2))
    y = float(exact)
    value = 0.5 * math.erfc(y)
    return value - 2.0 * y * float(exact - y) * value if 1.0 < y < 40.0 else value


def _gelu(x: float) -> float:
    """x times the normal distribution."""
    return 0.0 if x == -math.inf else x * _ndtr(x)


def _gelu_slope(x: float) -> float:
    """The normal distribution, and x times its density."""
    density = float(np.exp(-0.5 * np.longdouble(x) ** 2)) / math.sqrt(2.0 * math.pi)
    return _ndtr(x) + (x * density if density else 0.0)


def _polygamma(x: float, order: int) -> float:
    """Digamma (0) or trigamma (1): upward recurrence, then the asymptotic series."""
    if x == -math.inf or math.isnan(x):
        return math.nan
    if abs(x) < 1e-150:
        return (
            math.inf if order else math.copysign(min(1.0 / abs(x), math.inf) if x else math.inf, -x)
        )
    if x <= 0 and x == math.floor(x):
        return math.inf if order else math.nan
    if x < 0.5:  # reflection: pi / tan and pi / sin of the exact distance to an integer
        d = x - round(x)
        if order:
            return (math.pi / math.sin(math.pi * d)) ** 2 - _polygamma(1.0 - x, 1)
        return _polygamma(1.0 - x, 0) - math.pi / math.tan(math.pi * d)
    return _asymptotic(x, order)


def _asymptotic(x: float, order: int) -> float:
    total = 0.0
    while x < 25.0:
        total += 1.0 / (x * x) if order else -1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    if order:
        series = r * (1 / 6 + r * (-1 / 30 + r * (1 / 42 + r * (-1 / 30 + r * (5 / 66)))))
        return total + (1.0 + 0.5 / x + series) / x
    series = r * (1 / 12 + r * (-1 / 120 + r * (1 / 252 + r * (-1 / 240 + r * (1 / 132)))))
    return total + math.log(x) - 0.5 / x - series


erf = _elementwise(math.erf)
erfinv = _elementwise(_erfinv)
gelu = _elementwise(_gelu)
gelu_slope = _elementwise(_gelu_slope)
gamma = _elementwise(_pole_safe(math.gamma, math.nan))
gammaln = _elementwise(_pole_safe(math.lgamma, math.inf))
digamma = _elementwise(lambda x: _polygamma(x, 0))
trigamma = _elementwise(lambda x: _polygamma(x, 1))
