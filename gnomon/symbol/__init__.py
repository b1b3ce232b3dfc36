"""`mx.sym`: networks composed of operators and variables, before they are given data.

>>> import gnomon as mx
>>> data = mx.sym.Variable("data")
>>> net = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=8, name="fc"), act_type="relu")
>>> net.list_arguments()
['data', 'fc_weight', 'fc_bias']
"""

from gnomon.base import NotImplementedForSymbol as NotImplementedForSymbol
from gnomon.symbol.create import (
    arange as arange,
    eye as eye,
    full as full,
    histogram as histogram,
    hypot as hypot,
    linspace as linspace,
    maximum as maximum,
    minimum as minimum,
    ones as ones,
    pow as pow,
    power as power,
    split_v2 as split_v2,
    zeros as zeros,
)
from gnomon.symbol.functions import top as _top
from gnomon.symbol.symbol import (
    Group as Group,
    Symbol as Symbol,
    Variable as Variable,
    load as load,
    load_json as load_json,
    var as var,
)

__getattr__, __dir__ = _top()
