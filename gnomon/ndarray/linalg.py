"""Linear algebra: `mx.nd.linalg`."""

from gnomon.ndarray.functions import attributes

__getattr__, __dir__ = attributes("linalg")
