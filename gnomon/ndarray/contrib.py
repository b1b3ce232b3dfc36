"""Operators of the second row: `mx.nd.contrib`."""

from gnomon.ndarray.control import (
    adamw_update,
    cond,
    foreach,
    isfinite,
    isinf,
    isnan,
    mp_adamw_update,
    rand_zipfian,
    while_loop,
)
from gnomon.ndarray.functions import attributes

__all__ = [
    "adamw_update",
    "cond",
    "foreach",
    "isfinite",
    "isinf",
    "isnan",
    "mp_adamw_update",
    "rand_zipfian",
    "while_loop",
]

__getattr__, __dir__ = attributes("contrib", __all__)
