"""Operators that MXNet calls contributed: `mx.sym.contrib`."""

from gnomon.symbol.control import cond, foreach, while_loop
from gnomon.symbol.functions import attributes

__all__ = ["cond", "foreach", "while_loop"]

__getattr__, __dir__ = attributes("contrib", __all__)
