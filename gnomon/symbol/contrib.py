"""Operators that MXNet calls contributed: `mx.sym.contrib`."""

from gnomon.symbol.control import cond, foreach, while_loop
from gnomon.symbol.decayed import adamw_update, mp_adamw_update, rand_zipfian
from gnomon.symbol.functions import attributes
from gnomon.symbol.random import uniform

__all__ = [
    "adamw_update",
    "cond",
    "foreach",
    "mp_adamw_update",
    "rand_zipfian",
    "uniform",
    "while_loop",
]

__getattr__, __dir__ = attributes("contrib", __all__)
