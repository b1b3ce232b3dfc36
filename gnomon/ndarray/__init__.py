"""`mx.nd`: arrays computed asynchronously, and every operator as a function of them.

>>> import gnomon as mx
>>> x = mx.nd.array([[1, 2], [3, 4]])
>>> mx.nd.dot(x, x).asnumpy()
array([[ 7., 10.],
       [15., 22.]], dtype=float32)
"""

from gnomon.ndarray.api.elementwise import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    hypot,
    lesser,
    lesser_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    modulo,
    multiply,
    not_equal,
    power,
    subtract,
    true_divide,
)
from gnomon.ndarray.api.functions import top
from gnomon.ndarray.api.keys import (
    get_indexing_dispatch_code,
    get_oshape_of_gather_nd_op,
    indexing_key_expand_implicit_axes,
)
from gnomon.ndarray.create import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    histogram,
    linspace,
    moveaxis,
    onehot_encode,
    ones,
    reset_arrays,
    split_v2,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)
from gnomon.ndarray.decode import imdecode
from gnomon.ndarray.files import load, load_frombuffer, save, waitall
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ndarray.ndarray import NDArray
from gnomon.ndarray.sparse.creation import cast_storage

__all__ = [
    "NDArray",
    "add",
    "arange",
    "array",
    "cast_storage",
    "concatenate",
    "divide",
    "empty",
    "equal",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "get_indexing_dispatch_code",
    "get_oshape_of_gather_nd_op",
    "greater",
    "greater_equal",
    "histogram",
    "hypot",
    "imdecode",
    "indexing_key_expand_implicit_axes",
    "invoke",
    "lesser",
    "lesser_equal",
    "linspace",
    "load",
    "load_frombuffer",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "modulo",
    "moveaxis",
    "multiply",
    "not_equal",
    "onehot_encode",
    "ones",
    "power",
    "reset_arrays",
    "save",
    "split_v2",
    "subtract",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "true_divide",
    "waitall",
    "zeros",
]

__getattr__, __dir__ = top(__all__)
