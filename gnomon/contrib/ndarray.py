"""`mx.contrib.ndarray`: the functions of `mx.nd.contrib`.

>>> import gnomon as mx
>>> mx.contrib.ndarray.isnan is mx.nd.contrib.isnan
True
"""

from typing import Any

from gnomon.ndarray import contrib as _contrib


def __getattr__(name: str) -> Any:
    return getattr(_contrib, name)


def __dir__() -> list[str]:
    return dir(_contrib)
