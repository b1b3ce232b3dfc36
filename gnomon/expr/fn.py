"""Every scalar function by name: `fn.exp(x)`, `fn.maximum(a, b)`, `fn.where(c, a, b)`, ...

>>> from gnomon.expr import fn
>>> fn.sigmoid(0.0)
0.5
"""

from __future__ import annotations

from gnomon.base import nearest
from gnomon.expr.functions.scalar import SCALAR, ScalarFn

CLASSIC = {"plus": "add", "minus": "sub"}  # mshadow's names


def __getattr__(name: str) -> ScalarFn:
    try:
        found = SCALAR[CLASSIC.get(name, name)]
    except KeyError:
        raise AttributeError(f"no scalar function {name!r}{nearest(name, SCALAR)}") from None
    globals()[name] = found  # the next time it is an attribute like any
    return found


def __dir__() -> list[str]:
    return sorted([*SCALAR, *CLASSIC])
