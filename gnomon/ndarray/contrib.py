"""Operators of the second row: `mx.nd.contrib`."""

from gnomon.ndarray.api.control import (
    cond,
    foreach,
    isfinite,
    isinf,
    isnan,
    rand_zipfian,
    while_loop,
)
from gnomon.ndarray.api.functions import attributes
from gnomon.ndarray.decayed import (
    adamw_update,
    mp_adamw_update,
    multi_adamw_update,
    multi_lamb_update,
    multi_mp_adamw_update,
    multi_mp_lamb_update,
)
from gnomon.ndarray.random import uniform

__all__ = [
    "adamw_update",
    "cond",
    "foreach",
    "isfinite",
    "isinf",
    "isnan",
    "mp_adamw_update",
    "multi_adamw_update",
    "multi_lamb_update",
    "multi_mp_adamw_update",
    "multi_mp_lamb_update",
    "rand_zipfian",
    "uniform",
    "while_loop",
]

__getattr__, __dir__ = attributes("contrib", __all__)
