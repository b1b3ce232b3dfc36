"""Every operator under its registered name: `mx.nd.op`."""

from gnomon.ndarray.api.functions import attributes
from gnomon.ndarray.create import reset_arrays

__all__ = ["reset_arrays"]  # which writes where the operator makes new arrays

__getattr__, __dir__ = attributes("op", __all__)
