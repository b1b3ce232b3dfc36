"""Running machine code: linking, programs, threads, storage, libraries and devices.

`Features` and `feature_list` are what users call `mx.runtime` for; they load what they tell of.
"""

from typing import Any

from gnomon.ground.lock import load_module as _load_module

_PUBLIC = ("Feature", "Features", "feature_list")


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'gnomon.runtime' has no attribute {name!r}")
    return getattr(_load_module("gnomon.runtime.features"), name)
