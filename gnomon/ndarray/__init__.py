"""`mx.nd`: arrays computed asynchronously, and every operator as a function of them.

>>> import gnomon as mx
>>> x = mx.nd.array([[1, 2], [3, 4]])
>>> mx.nd.dot(x, x).asnumpy()
array([[ 7., 10.],
       [15., 22.]], dtype=float32)
"""

from gnomon.ndarray.api.elementwise import (
    add as add,
    divide as divide,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    lesser as lesser,
    lesser_equal as lesser_equal,
    logical_and as logical_and,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    modulo as modulo,
    multiply as multiply,
    not_equal as not_equal,
    power as power,
    subtract as subtract,
    true_divide as true_divide,
)
from gnomon.ndarray.api.functions import top as _top
from gnomon.ndarray.api.keys import (
    get_indexing_dispatch_code as get_indexing_dispatch_code,
    get_oshape_of_gather_nd_op as get_oshape_of_gather_nd_op,
    indexing_key_expand_implicit_axes as indexing_key_expand_implicit_axes,
)
from gnomon.ndarray.core.codes import (
    _DTYPE_MX_TO_NP as _DTYPE_MX_TO_NP,
    _DTYPE_NP_TO_MX as _DTYPE_NP_TO_MX,
    _GRAD_REQ_MAP as _GRAD_REQ_MAP,
    _STORAGE_TYPE_DEFAULT as _STORAGE_TYPE_DEFAULT,
    _STORAGE_TYPE_ID_TO_STR as _STORAGE_TYPE_ID_TO_STR,
    _STORAGE_TYPE_STR_TO_ID as _STORAGE_TYPE_STR_TO_ID,
)
from gnomon.ndarray.create import *
from gnomon.ndarray.decode import imdecode as imdecode
from gnomon.ndarray.files import (
    load as load,
    load_frombuffer as load_frombuffer,
    save as save,
    waitall as waitall,
)
from gnomon.ndarray.lazy.invoke import invoke as invoke
from gnomon.ndarray.ndarray import NDArray as NDArray
from gnomon.ndarray.sparse.creation import cast_storage as cast_storage

__getattr__, __dir__ = _top()
