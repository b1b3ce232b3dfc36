"""`mx.nd`: arrays computed asynchronously, and every operator as a function of them.

>>> import gnomon as mx
>>> x = mx.nd.array([[1, 2], [3, 4]])
>>> mx.nd.dot(x, x).asnumpy()
array([[ 7., 10.],
       [15., 22.]], dtype=float32)
"""

from importlib import import_module as _import_module
from typing import Any

from gnomon.ndarray import functions as _functions
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
    split_v2,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)
from gnomon.ndarray.elementwise import (
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
from gnomon.ndarray.files import load, load_frombuffer, save, waitall
from gnomon.ndarray.invoke import invoke
from gnomon.ndarray.ndarray import NDArray
from gnomon.ndarray.sparse_create import cast_storage

_SPACES = ("_internal", "contrib", "image", "linalg", "op", "random", "sparse")

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
    "greater",
    "greater_equal",
    "histogram",
    "hypot",
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
    "save",
    "split_v2",
    "subtract",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "true_divide",
    "waitall",
    "zeros",
]


def __getattr__(name: str) -> Any:
    """The namespace or the operator's function called `name`."""
    if name in _SPACES:
        return _import_module(f"gnomon.ndarray.{name}")
    if name.startswith("__"):
        raise AttributeError(f"module 'gnomon.ndarray' has no attribute {name!r}")
    return _functions.find("", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SPACES, *_functions.names("")})
