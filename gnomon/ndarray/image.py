"""Operators on images: `mx.nd.image`."""

from gnomon.ndarray.api.functions import attributes

__getattr__, __dir__ = attributes("image")
