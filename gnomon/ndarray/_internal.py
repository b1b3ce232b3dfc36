"""Operators whose names begin with an underscore: `mx.nd._internal`."""

from gnomon.ndarray.api.functions import attributes

__getattr__, __dir__ = attributes("_internal")
