"""Operators of the second row: `mx.nd.contrib`."""

from gnomon.ndarray.functions import attributes

__getattr__, __dir__ = attributes("contrib")
