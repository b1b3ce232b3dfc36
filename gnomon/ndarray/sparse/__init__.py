"""Arrays in sparse storage, and operators that know it: `mx.nd.sparse`."""

from gnomon.compatibility.absent import public as _public
from gnomon.ndarray.api.functions import attributes as _attributes
from gnomon.ndarray.sparse.arrays import (
    BaseSparseNDArray as BaseSparseNDArray,
    CSRNDArray as CSRNDArray,
    RowSparseNDArray as RowSparseNDArray,
)
from gnomon.ndarray.sparse.creation import *

__getattr__, __dir__ = _attributes("sparse", _public(__name__))
