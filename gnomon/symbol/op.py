"""Every operator under its registered name: `mx.sym.op`."""

from gnomon.symbol.functions import attributes

__getattr__, __dir__ = attributes("op")
