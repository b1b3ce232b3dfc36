"""`mx.io.io`: the names of `mx.io`, under the path that older programs import them from."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """What `mx.io` has."""
    return getattr(import_module("gnomon.io"), name)
