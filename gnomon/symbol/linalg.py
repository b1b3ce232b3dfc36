"""Operators of linear algebra: `mx.sym.linalg`."""

from gnomon.symbol.functions import attributes

__getattr__, __dir__ = attributes("linalg")
