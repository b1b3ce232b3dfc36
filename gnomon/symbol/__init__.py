"""`mx.sym`: networks composed of operators and variables, before they are given data.

>>> import gnomon as mx
>>> data = mx.sym.Variable("data")
>>> net = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=8, name="fc"), act_type="relu")
>>> net.list_arguments()
['data', 'fc_weight', 'fc_bias']
"""

from gnomon.base import NotImplementedForSymbol
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
from gnomon.symbol.functions import top
from gnomon.symbol.symbol import Group, Symbol, Variable, load, load_json, var

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

__getattr__, __dir__ = top(__all__)
