"""`mx.io.io`: the names of `mx.io`, under the path that older programs import them from."""

from typing import Any

from gnomon.ground.lock import load_module


def __getattr__(name: str) -> Any:
    """What `mx.io` has."""
    return getattr(load_module("gnomon.io"), name)
