"""Stores of arrays by key that sum what is pushed and hand out what is current."""

from typing import Any

from gnomon.compatibility.absent import elsewhere
from gnomon.kvstore.base import KVStoreBase, create, joins_processes, pushpull_each
from gnomon.kvstore.joining import FILES, found
from gnomon.kvstore.local import KVStore

__all__ = [
    "AsyncStore",
    "Horovod",
    "KVStore",
    "KVStoreBase",
    "KVStoreServer",
    "SyncStore",
    "create",
    "joins_processes",
    "pushpull_each",
]


def __getattr__(name: str) -> Any:
    """A class of a file that is read when it is first asked for."""
    return found(name) if name in FILES else elsewhere(__name__, name, __all__)
