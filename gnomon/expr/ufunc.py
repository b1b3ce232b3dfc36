"""NumPy's functions of expressions: `np.exp(x)` is `fn.exp(x)`, and computes nothing yet."""

from __future__ import annotations

from typing import Any

from gnomon.base import nearest
from gnomon.expr.functions.scalar import SCALAR, ScalarFn
from gnomon.expr.unsupported import INSTEAD

# where the two names differ; `remainder` and `floor_divide` differ in meaning too
NAMES = {
    "absolute": "abs",
    "deg2rad": "radians",
    "divide": "div",
    "equal": "eq",
    "fabs": "abs",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "rad2deg": "degrees",
    "subtract": "sub",
}
# NumPy's names of operators that there are not
SIGNS = {
    "floor_divide": "floordiv",
    "remainder": "mod",
}


def scalar_function(ufunc: Any, method: str, kwargs: dict[str, Any]) -> ScalarFn:
    """The scalar function that a call of NumPy's `ufunc` on expressions means.

    >>> import numpy as np
    >>> scalar_function(np.multiply, "__call__", {}).name
    'mul'

    Raises:
        TypeError: there is none, or NumPy was asked for more than its value at each element.
    """
    name = NAMES.get(ufunc.__name__, ufunc.__name__)
    if method != "__call__":
        told = f"np.{ufunc.__name__}.{method} takes no expressions"
        raise TypeError(
            f"{told}: shadow.reduce(src, 'sum', axes) reduces, also by 'max', 'prod' ..."
        )
    if kwargs:
        told = f"np.{ufunc.__name__} of expressions takes no {', '.join(kwargs)}"
        raise TypeError(f"{told}: assign the result, as in out[:] = fn.{name}(...)")
    if name not in SCALAR or SCALAR[name].arity != ufunc.nin:
        told = f"np.{ufunc.__name__} takes no expressions"
        _, instead = INSTEAD.get(SIGNS.get(name, name), (name, ""))
        if instead:
            raise TypeError(f"{told}; there is {instead}")
        near = nearest(name, SCALAR)
        raise TypeError(f"{told}, no fn is {name}{near}; shadow.op makes a function of your own")
    return SCALAR[name]
