"""`mx.contrib.symbol`: the functions of `mx.sym.contrib`.

>>> import gnomon as mx
>>> mx.contrib.symbol.quadratic is mx.sym.contrib.quadratic
True
"""

from typing import Any

from gnomon.symbol import contrib as _contrib


def __getattr__(name: str) -> Any:
    return getattr(_contrib, name)


def __dir__() -> list[str]:
    return dir(_contrib)
