"""Operators on sparse storage: `mx.sym.sparse`."""

from gnomon.symbol.functions import attributes

__getattr__, __dir__ = attributes("sparse")
