"""What the methods of optimizers are given, and give: checked for every class."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gnomon.base import ParamError, check_kind, complaint, shown
from gnomon.expr.node import Expr
from gnomon.ndarray.core.array import Array
from gnomon.optimizer.fused import Rates


def one_by_one(update: Callable[..., Any]) -> Callable[..., Any]:
    """An update that takes lists, too."""

    @functools.wraps(update)
    def wrapped(self: Any, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if not isinstance(index, (list, tuple)):
            update(self, index, weight, grad, state)
            return
        lists = index, weight, grad, state
        sizes = [len(x) if isinstance(x, (list, tuple)) else None for x in lists]
        if len(set(sizes)) > 1:
            where, expected = f"{type(self).__name__}.{update.__name__}", "lists of one length"
            raise ParamError(complaint(where, "index, weight, grad, state", expected, sizes))
        for each in zip(*lists, strict=True):
            update(self, *each)

    return wrapped


def of_weight(create: Callable[..., Any]) -> Callable[..., Any]:
    """A class's `create_state`, with a TypeError where the weight is no array."""

    @functools.wraps(create)
    def checked(self: Any, index: Any, weight: Any) -> Any:
        where = f"{type(self).__name__}.create_state"
        check_kind(where, "weight", weight, Array, "an NDArray")
        return create(self, index, weight)

    return checked


def _of_expressions(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A class's `formula`, with a TypeError where it is given other than expressions, or gives."""

    @functools.wraps(formula)
    def checked(self: Any, weight: Any, grad: Any, states: Any, rates: Any) -> Any:
        where = f"{type(self).__name__}.formula"
        check_kind(where, "states", states, Sequence, "a list of expressions")
        for name, value in (("weight", weight), ("grad", grad), *(("states", s) for s in states)):
            check_kind(where, name, value, Expr, "an expression")
        check_kind(where, "rates", rates, Rates, "Rates")
        found = formula(self, weight, grad, states, rates)
        if not isinstance(found, Sequence) or len(found) != 1 + len(states):
            expected = f"a tuple of the new weight and {len(states)} new states"
            raise TypeError(complaint(where, "return value", expected, shown(found)))
        return found

    return checked


#: what stands in the place of a class's own methods
METHODS: dict[str, Callable[..., Any]] = {
    "create_state": of_weight,
    "formula": _of_expressions,
    "update": one_by_one,
    "update_multi_precision": one_by_one,
}
