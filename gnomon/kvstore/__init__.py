"""Stores of arrays by key that sum what is pushed and hand out what is current."""

from gnomon.absent import finding
from gnomon.kvstore.asynchronous import AsyncStore
from gnomon.kvstore.base import KVStoreBase, create, joins_processes
from gnomon.kvstore.local import KVStore
from gnomon.kvstore.server import KVStoreServer
from gnomon.kvstore.sync import Horovod, SyncStore

__all__ = [
    "AsyncStore",
    "Horovod",
    "KVStore",
    "KVStoreBase",
    "KVStoreServer",
    "SyncStore",
    "create",
    "joins_processes",
]

__getattr__ = finding(__name__, __all__)
