"""Running machine code: linking, programs, threads, storage, libraries and devices.

`Features` and `feature_list` are what users call `mx.runtime` for; they load what they tell of.
"""

from typing import Any

from gnomon.compatibility.absent import elsewhere as _elsewhere
from gnomon.ground.lock import load_module as _load_module

_PUBLIC = ("Feature", "Features", "feature_list")


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        return _elsewhere("gnomon.runtime", name, _PUBLIC)
    return getattr(_load_module("gnomon.runtime.features"), name)
