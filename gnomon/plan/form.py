"""The form of a structure's key: text that means the same in every process."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from gnomon.dtype import DType
from gnomon.expr.functions.formula import Formula
from gnomon.expr.functions.scalar import ScalarFn
from gnomon.expr.reducer import NAMED, Reducer

OWN = "gnomon.expr."  # nodes of these modules are told by name: their sources are in the key
PLAIN = frozenset({bool, int, float, str, type(None)})


class Unnamed(LookupError):
    """A part of a structure that has no form outside of this process."""


def form(thing: Any) -> str:
    """A part of a structure's key as text: equal for equal parts in every process.

    >>> form(("scalar", 0, None, -0.0))
    "('scalar',0,None,-0.0,)"

    Raises:
        Unnamed: it has none.
    """
    kind = type(thing)
    if kind in PLAIN:
        return repr(thing)
    if kind is tuple:
        return f"({''.join([form(each) + ',' for each in thing])})"
    if kind is Formula:
        return f"formula{thing.text()!r}"
    if kind is ScalarFn:
        return f"function{form(thing.key)}"
    if kind is DType:
        return f"dtype:{thing.name}"
    if kind is Reducer:
        return _reducer(thing)
    if isinstance(thing, type):
        return _own(thing)
    if dataclasses.is_dataclass(thing):
        values = tuple(getattr(thing, field.name) for field in dataclasses.fields(thing))
        return _own(kind) + form(values)
    raise Unnamed(f"{thing!r} has no form outside of this process")


def _reducer(reducer: Reducer) -> str:
    if NAMED.get(reducer.name) is reducer:
        return f"reducer:{reducer.name}"
    match reducer.key:  # that of `reducer.from_operator`: its combination is the formula
        case ((Formula(), bool()), int() | float()):
            return f"reducer{form(reducer.key)}"
    raise Unnamed(f"reducer {reducer.name!r} is a Python function")


def _own(kind: type) -> str:
    """The name of a class of gnomon's expressions."""
    module = sys.modules.get(kind.__module__)
    if kind.__module__.startswith(OWN) and getattr(module, kind.__qualname__, None) is kind:
        return f"class:{kind.__module__}.{kind.__qualname__}"
    raise Unnamed(f"class {kind.__qualname__!r} is not of gnomon")
