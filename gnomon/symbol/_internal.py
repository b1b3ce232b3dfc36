"""Operators whose names begin with an underscore: `mx.sym._internal`."""

from gnomon.symbol.functions import attributes

__getattr__, __dir__ = attributes("_internal")
