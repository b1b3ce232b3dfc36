"""Stores of arrays by key that sum what is pushed and hand out what is current."""

from gnomon.kvstore.base import KVStoreBase, create
from gnomon.kvstore.local import KVStore

__all__ = ["KVStore", "KVStoreBase", "create"]
