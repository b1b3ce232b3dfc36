"""`mx.contrib.amp.amp`: the names of `mx.contrib.amp`, under the path that libraries import."""

from typing import Any

from gnomon.ground.lock import load_module
from gnomon.ops import precision


def __getattr__(name: str) -> Any:
    """What `mx.contrib.amp` has, and whether `init` was called."""
    if name == "_amp_initialized":
        return precision.current is not None
    return getattr(load_module("gnomon.contrib.amp"), name)
