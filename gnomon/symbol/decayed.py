"""`mx.sym.contrib`'s helpers: AdamW with a number as scale, and numbers for sampled softmax."""

from __future__ import annotations

import math
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.symbol.create import full
from gnomon.symbol.functions import find
from gnomon.symbol.symbol import Symbol


def scale(rescale_grad: Any) -> Symbol:
    """What gradients are multiplied by, as a symbol of one element."""
    if isinstance(rescale_grad, Symbol):
        return rescale_grad
    return full((1,), rescale_grad)


def adamw_update(
    weight: Symbol, grad: Symbol, mean: Symbol, var: Symbol, rescale_grad: Any, lr: float,
    eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0,
    clip_gradient: float = -1, out: Any = None, name: str | None = None, **kwargs: Any,
) -> Symbol:  # fmt: skip
    """A step of Adam with a decay of its own; none where `rescale_grad` is not finite, or 0."""
    inputs = weight, grad, mean, var, scale(rescale_grad)
    given = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    made: Symbol = find("_internal", "_adamw_update")(
        *inputs, clip_gradient=clip_gradient, name=name, **given, **kwargs
    )
    return made


def mp_adamw_update(
    weight: Symbol, grad: Symbol, mean: Symbol, var: Symbol, weight32: Symbol, rescale_grad: Any,
    lr: float, eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    wd: float = 0, clip_gradient: float = -1, out: Any = None, name: str | None = None,
    **kwargs: Any,
) -> Symbol:  # fmt: skip
    """`adamw_update` on `weight32`, a float32 copy of the weight."""
    inputs = weight, grad, mean, var, weight32, scale(rescale_grad)
    given = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    made: Symbol = find("_internal", "_mp_adamw_update")(
        *inputs, clip_gradient=clip_gradient, name=name, **given, **kwargs
    )
    return made


def rand_zipfian(
    true_classes: Symbol, num_sampled: int, range_max: int
) -> tuple[Symbol, Symbol, Symbol]:
    """Numbers below `range_max`, small ones likelier, for sampled softmax.

    Gives `num_sampled` numbers in int64, and how often each of `true_classes` and of the numbers is
    expected among them.

    Raises:
        ParamError: `range_max` is less than 1.
    """
    if range_max < 1:
        raise ParamError(complaint("rand_zipfian", "range_max", "a number from 1 up", range_max))
    whole = math.log(range_max + 1)
    uniform = find("random", "uniform")(0, whole, shape=(num_sampled,), dtype="float64")
    numbers = find("", "cast")(find("", "exp")(uniform) - 1, dtype="int64") % range_max

    def expected(classes: Symbol) -> Symbol:
        wide = find("", "cast")(classes, dtype="float64")
        found: Symbol = find("", "log")((wide + 2.0) / (wide + 1.0)) * (num_sampled / whole)
        return found

    return numbers, expected(true_classes), expected(numbers)
