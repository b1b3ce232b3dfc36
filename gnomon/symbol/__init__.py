"""`mx.sym`: networks composed of operators and variables, before they are given data.

>>> import gnomon as mx
>>> data = mx.sym.Variable("data")
>>> net = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=8, name="fc"), act_type="relu")
>>> net.list_arguments()
['data', 'fc_weight', 'fc_bias']
"""

from importlib import import_module as _import_module
from typing import Any

from gnomon.symbol import functions as _functions
from gnomon.symbol.create import (
    arange,
    eye,
    full,
    histogram,
    hypot,
    linspace,
    maximum,
    minimum,
    ones,
    pow,
    power,
    split_v2,
    zeros,
)
from gnomon.symbol.methods import NotImplementedForSymbol
from gnomon.symbol.symbol import Group, Symbol, Variable, load, load_json, var

_SPACES = ("_internal", "contrib", "image", "linalg", "op", "random", "sparse")

__all__ = [
    "Group",
    "NotImplementedForSymbol",
    "Symbol",
    "Variable",
    "arange",
    "eye",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "var",
    "zeros",
]


def __getattr__(name: str) -> Any:
    """The namespace or the operator's function called `name`."""
    if name in _SPACES:
        return _import_module(f"gnomon.symbol.{name}")
    if name.startswith("__"):
        raise AttributeError(f"module 'gnomon.symbol' has no attribute {name!r}")
    return _functions.find("", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SPACES, *_functions.names("")})
