"""Operators on images: `mx.sym.image`."""

from gnomon.symbol.functions import attributes

__getattr__, __dir__ = attributes("image")
