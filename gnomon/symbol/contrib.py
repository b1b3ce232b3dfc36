"""Operators that MXNet calls contributed: `mx.sym.contrib`."""

from gnomon.symbol.functions import attributes

__getattr__, __dir__ = attributes("contrib")
