"""Linear algebra: `mx.nd.linalg`."""

from gnomon.ndarray.api.functions import attributes

__getattr__, __dir__ = attributes("linalg")
