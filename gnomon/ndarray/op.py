"""Every operator under its registered name: `mx.nd.op`."""

from gnomon.ndarray.functions import attributes

__getattr__, __dir__ = attributes("op")
